import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { WeightConsumer } from "../find-weights.ts";
import type { NodeDescription } from "../graph-rewrite.ts";
import { countBlocks } from "../kernels/block-format.ts";
import { broadcastScaleDims } from "./describe-storage.ts";
import { intAttributes } from "../../onnx/node-attributes.ts";
import type { StoredWeight } from "./stored-weight.ts";
import { splitNibbles, unpackZeroPoints } from "./unpack-nibbles.ts";
import type { AffineStorage, BlockStorage } from "../weight-format.ts";

/** Gathers rows of int8 values, their scales and zero points, and makes the rows numbers. */
export function gatherAffineRows(
  stored: StoredWeight,
  consumer: WeightConsumer,
  storage: AffineStorage,
): void {
  const { axis, batchAxes } = storage;
  const { steps, add, gather, float } = startRowSteps(stored, consumer);
  const scaleDims = broadcastScaleDims(stored.weight, storage);
  const parameter = (name: string, part: string) => {
    if (axis === null) return name;
    return gather(batchAxes > 0 ? name : stored.reshape(name, scaleDims), part);
  };
  let numbers = float(gather(stored.quantizedValues, "values"), "numbers");
  if (stored.zeroPoints !== undefined) {
    const offsets = float(parameter(stored.zeroPoints, "zero_points"), "offsets");
    numbers = add("centred", { opType: "Sub", input: [numbers, offsets] });
  }
  const scales = parameter(stored.scales, "scales");
  const isFloat = stored.weight.tensor.dataType === DataType.FLOAT;
  const factor = isFloat ? scales : float(scales, "factors");
  const result = { opType: "Mul", input: [numbers, factor] };
  writeResult(stored, consumer, steps, result);
}

/**
 * Gathers rows of packed blocks by standard operators, and makes the rows numbers. Rows have whole
 * blocks.
 */
export function gatherPackedRows(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { shape: { k, n }, format }: BlockStorage,
): void {
  const { bits } = format;
  const { steps, add, gather, float, indices } = startRowSteps(stored, consumer);
  const blockDims = [n, countBlocks(k, format), ...(bits === 4 ? [1, 1] : [1])];
  const packed = gather(stored.quantizedValues, "packed");
  const addAxis = (value: string) =>
    add("pair", { opType: "Unsqueeze", input: [value, stored.integers([-1])] });
  const numbers =
    bits === 4 ? splitNibbles(stored, packed, add, addAxis) : float(packed, "numbers");
  const zeroPoints = unpackZeroPoints(stored, k, n, format);
  const offsets =
    zeroPoints === undefined
      ? stored.float(2 ** (bits - 1))
      : gather(stored.reshape(zeroPoints, blockDims), "zero_points");
  const centred = add("centred", { opType: "Sub", input: [numbers, offsets] });
  const scales = float(gather(stored.reshape(stored.scales, blockDims), "scales"), "factors");
  const scaled = add("blocks", { opType: "Mul", input: [centred, scales] });
  const rows = add("rows", { opType: "Shape", input: [indices] });
  const attribute = intAttributes({ axis: 0 });
  const shape = add("shape", { opType: "Concat", input: [rows, stored.integers([k])], attribute });
  const result = { opType: "Reshape", input: [scaled, shape] };
  writeResult(stored, consumer, steps, result);
}

/** The nodes that replace a Gather, and ways to add one; each gives the name of its output. */
function startRowSteps({ rewrite }: StoredWeight, { node }: WeightConsumer) {
  const [, indices = ""] = node.input;
  const steps: NodeDescription[] = [];
  const add = (part: string, step: Omit<NodeDescription, "output">): string => {
    const output = rewrite.names.allocate(`${node.output[0]}_${part}`);
    steps.push({ ...step, output: [output] });
    return output;
  };
  const gather = (table: string, part: string) =>
    add(part, { opType: "Gather", input: [table, indices] });
  const float = (value: string, part: string) =>
    add(part, { opType: "Cast", input: [value], attribute: intAttributes({ to: DataType.FLOAT }) });
  return { indices, steps, add, gather, float };
}

/** Replaces a Gather by nodes, the last of which computes its result in float32. */
function writeResult(
  { rewrite }: StoredWeight,
  { node, view: { elementType } }: WeightConsumer,
  steps: readonly NodeDescription[],
  result: Omit<NodeDescription, "output">,
): void {
  if (elementType === DataType.FLOAT) {
    rewrite.replaceNode(node, [...steps, { ...result, output: node.output }]);
    return;
  }
  const rows = rewrite.names.allocate(`${node.output[0]}_float`);
  const attribute = intAttributes({ to: elementType });
  rewrite.replaceNode(node, [
    ...steps,
    { ...result, output: [rows] },
    { opType: "Cast", input: [rows], output: node.output, attribute },
  ]);
}
