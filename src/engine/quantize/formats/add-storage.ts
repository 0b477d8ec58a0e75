import { countElements } from "../../onnx/tensor-shape.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { floatBytes, requireFloatType, sourceWeight } from "../source-weight.ts";
import { weightDims } from "../weight-dims.ts";
import { countStorageBytes, describeStorage } from "./describe-storage.ts";
import { StoredWeight } from "./stored-weight.ts";
import type { BlockStorage, QuantizedStorage } from "../weight-format.ts";

/** Replaces a weight by quantized tensors, and adds the task that computes them. */
export function addStorage(
  rewrite: GraphRewrite,
  weight: Weight,
  storage: QuantizedStorage,
): StoredWeight {
  const { quantizedValues, scaleDims, zeroPoints } = describeStorage(weight, storage);
  const allocate = (part: string) => rewrite.names.allocate(`${weight.name}_${part}`);
  const names = {
    quantizedValues: allocate("quantized"),
    scales: allocate("scale"),
    zeroPoints: zeroPoints && allocate("zero_point"),
  };
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
    zeroPoints:
      zeroPoints &&
      rewrite.addComputedTensor(weight, { name: names.zeroPoints ?? "", ...zeroPoints }),
  };
  rewrite.removeWeight(weight);
  const resultBytes = countStorageBytes(weight, storage);
  const scaleType = requireFloatType(weight);
  rewrite.tasks.push({
    ...describeTask(weight, storage),
    ...source,
    resultBytes,
    scaleType,
    outputs,
  });
  return new StoredWeight(rewrite, weight, names);
}

function describeTask(weight: Weight, storage: QuantizedStorage) {
  if (storage.kind === "affine") {
    const { axis, batchAxes, format } = storage;
    const dims = weightDims(weight);
    return {
      kind: "linear" as const,
      matrices: countElements(dims.slice(0, batchAxes)),
      channels: axis === null ? 1 : (dims[axis] ?? 1),
      inner: countElements(dims.slice(axis === null ? batchAxes : axis + 1)),
      format,
    };
  }
  const { kind, matrices, shape, format } = storage;
  const layout = findBlockLayout(kind, shape.order);
  return { kind: "blocks" as const, layout, matrices, shape, format };
}

function findBlockLayout(kind: BlockStorage["kind"], order: "kn" | "nk") {
  if (kind === "packed-blocks") return "matmul" as const;
  if (kind === "packed-rows") return "gather" as const;
  return order === "kn" ? ("columns" as const) : ("rows" as const);
}
