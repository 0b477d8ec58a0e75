import { at } from "../../onnx/at.ts";
import type { FormatPlan } from "./choose-formats.ts";
import { countStorageBytes, describeStorage } from "./describe-storage.ts";
import { divideInputs } from "./divide-inputs.ts";
import { intAttributes } from "../../onnx/node-attributes.ts";
import { isStatic } from "./multiply-static.ts";
import { addCorrectedBias, addStaticBias, type ComputedBias } from "./product-bias.ts";
import { restoreWeight } from "./restore-weight.ts";
import { StoredWeight } from "./stored-weight.ts";
import { affineOperations, blockOperations, type OperationTable } from "./weight-operations.ts";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import { countElements } from "../../onnx/tensor-shape.ts";
import { type Weight, weightDims } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { addHalfWeight } from "../half/add-half-weight.ts";
import { isHalfUse } from "../half/plan-half-format.ts";
import { rewriteToHalf } from "../half/rewrite-to-half.ts";
import { floatBytes, requireFloatType, sourceWeight } from "../source-weight.ts";
import {
  type AffineOperation,
  type BlockOperation,
  type BlockStorage,
  isAffine,
  isHalf,
  type QuantizedFormat,
  type QuantizedStorage,
  type StorageFormat,
} from "../weight-format.ts";

/** Replaces weights by the tensors of their formats, and nodes by those that take them. */
export function writeFormats(rewrite: GraphRewrite, { weights, half }: FormatPlan): void {
  divideInputs(rewrite, weights);
  const halfWeights = new Map<NodeProto, Map<number, string>>();
  for (const { weight, format } of weights) {
    if (format === undefined) continue;
    if (!isHalf(format)) {
      writeQuantizedFormat(rewrite, weight, format);
      continue;
    }
    const name = addHalfWeight(rewrite, weight, format.storage);
    if (format.restoration === "fold") restoreHalf(rewrite, weight, name);
    for (const use of weight.uses.filter((each) => isHalfUse(each, half))) {
      const names = halfWeights.get(use.node) ?? new Map<number, string>();
      halfWeights.set(use.node, names.set(use.input, name));
    }
  }
  const { graph } = rewrite.model.proto;
  if (graph !== undefined && half.nodes.size > 0) {
    rewriteToHalf({ rewrite, choice: half, halfWeights }, graph);
  }
}

/** Adds the node, which runtimes evaluate at load, that computes a weight under its own name. */
function restoreHalf(rewrite: GraphRewrite, weight: Weight, name: string): void {
  const attribute = intAttributes({ to: weight.tensor.dataType });
  const node = { opType: "Cast", input: [name], output: [weight.name], attribute };
  rewrite.prependNode(weight.scope.body, node);
}

function writeQuantizedFormat(
  rewrite: GraphRewrite,
  weight: Weight,
  format: QuantizedFormat,
): void {
  const { storage, restoration } = format;
  const bias =
    isAffine(format) && isStatic(format)
      ? addStaticBias(rewrite, weight, format.storage)
      : addCorrectedBias(rewrite, weight, format);
  const stored = addStorage(rewrite, weight, { storage, bias });
  if (restoration !== null) restoreWeight(stored, storage, restoration);
  else for (const node of weight.viewNodes) rewrite.removeNode(node);
  if (isAffine(format)) writeOperations(stored, format, affineOperations);
  else writeOperations(stored, format, blockOperations);
}

function writeOperations<Storage, Operation extends AffineOperation | BlockOperation>(
  stored: StoredWeight,
  { storage, operations }: StorageFormat<Storage, Operation>,
  table: OperationTable<Storage, Operation>,
): void {
  for (const [index, consumer] of stored.weight.consumers.entries()) {
    const operation = at(operations, index);
    if (operation === "restore") continue;
    table[operation].write(stored, consumer, storage);
    // The operation takes the place of nodes that moved elements as these inputs said.
    for (const { node, scope } of consumer.view.nodes) {
      for (const name of node.input.slice(1)) stored.rewrite.makeConstant(scope, name);
    }
  }
}

/** Replaces a weight by quantized tensors, and adds the task that computes them. */
function addStorage(
  rewrite: GraphRewrite,
  weight: Weight,
  { storage, bias }: { storage: QuantizedStorage; bias: ComputedBias | undefined },
): StoredWeight {
  const stored = describeStorage(weight, storage);
  const { quantizedValues, scaleDims } = stored;
  const allocate = (part: string) => rewrite.names.allocate(`${weight.name}_${part}`);
  const names = { quantizedValues: allocate("quantized"), scales: allocate("scale") };
  const zeroPoints = stored.zeroPoints && { name: allocate("zero_point"), ...stored.zeroPoints };
  const source = sourceWeight(rewrite.model, weight);
  const outputs = {
    quantizedValues: rewrite.addComputedTensor(weight, {
      name: names.quantizedValues,
      ...quantizedValues,
    }),
    scales: rewrite.addComputedTensor(weight, {
      name: names.scales,
      dims: scaleDims,
      dataType: weight.tensor.dataType,
      bytes: countElements(scaleDims) * floatBytes(weight),
    }),
    zeroPoints: zeroPoints && rewrite.addComputedTensor(weight, zeroPoints),
    ...bias?.outputs,
  };
  rewrite.removeWeight(weight);
  const resultBytes = countStorageBytes(weight, storage);
  const scaleType = requireFloatType(weight);
  rewrite.tasks.push({
    ...describeTask(weight, storage),
    ...(bias && { bias: bias.task }),
    ...source,
    resultBytes,
    scaleType,
    outputs,
  });
  return new StoredWeight(rewrite, weight, {
    ...names,
    zeroPoints: zeroPoints?.name,
    bias: bias?.name,
  });
}

function describeTask(weight: Weight, storage: QuantizedStorage) {
  if (storage.kind === "affine") {
    const { axis, batchAxes, format, inputScales } = storage;
    const dims = weightDims(weight);
    return {
      kind: "linear" as const,
      matrices: countElements(dims.slice(0, batchAxes)),
      channels: axis === null ? 1 : at(dims, axis),
      inner: countElements(dims.slice(axis === null ? batchAxes : axis + 1)),
      format,
      ...(inputScales && { inputScales }),
    };
  }
  const { kind, matrices, shape, format } = storage;
  if (kind === "offset-blocks") return { kind, layout: "matmul" as const, matrices, shape, format };
  const layout = findBlockLayout(kind, shape.order);
  return { kind: "blocks" as const, layout, matrices, shape, format };
}

function findBlockLayout(kind: Exclude<BlockStorage["kind"], "offset-blocks">, order: "kn" | "nk") {
  if (kind === "packed-blocks") return "matmul" as const;
  if (kind === "packed-rows") return "gather" as const;
  return order === "kn" ? ("columns" as const) : ("rows" as const);
}
