import { intAttributes, stringAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeDescription } from "../graph-rewrite.ts";
import { countBlocks, type BlockFormat } from "../kernels/block-format.ts";
import type { StoredWeight } from "./stored-weight.ts";

type AddNode = (part: string, node: Omit<NodeDescription, "output">) => string;

/** float32 numbers of bytes [rows, columns] or more that have two each: [..., bytes, 2]. */
export function unpackNibbles(
  stored: StoredWeight,
  bytes: string,
  shape: readonly number[],
): string {
  const add: AddNode = (part, node) => stored.addNode(part, node);
  return splitNibbles(stored, bytes, add, (value) => stored.reshape(value, [...shape, 1]));
}

/** Zero points [N, blocks] of packed blocks as float32; undefined if there are none. */
export function unpackZeroPoints(
  stored: StoredWeight,
  k: number,
  n: number,
  format: BlockFormat,
): string | undefined {
  if (stored.zeroPoints === undefined) return undefined;
  if (format.bits === 8) return stored.cast(stored.zeroPoints, DataType.FLOAT);
  const blocks = countBlocks(k, format);
  const isPadded = blocks % 2 === 1;
  const pairs = unpackNibbles(stored, stored.zeroPoints, [n, Math.ceil(blocks / 2)]);
  const rows = stored.reshape(pairs, [n, isPadded ? blocks + 1 : blocks]);
  return isPadded ? stored.slice(rows, 1, { start: 0, size: blocks }) : rows;
}

/**
 * Numbers of bytes that have two each; `addAxis` adds a last axis of size 1. BitwiseAnd would raise
 * the model to opset 18.
 */
export function splitNibbles(
  stored: StoredWeight,
  bytes: string,
  add: AddNode,
  addAxis: (value: string) => string,
): string {
  const attribute = [stringAttribute("direction", "RIGHT")];
  const to = intAttributes({ to: DataType.FLOAT });
  const toFloat = (input: string) =>
    add("numbers", { opType: "Cast", input: [input], attribute: to });
  const high = toFloat(
    add("high", { opType: "BitShift", input: [bytes, stored.byte(4)], attribute }),
  );
  const shifted = add("shifted", { opType: "Mul", input: [high, stored.float(16)] });
  const low = add("low", { opType: "Sub", input: [toFloat(bytes), shifted] });
  const pairs = [low, high].map(addAxis);
  return add("pairs", { opType: "Concat", input: pairs, attribute: intAttributes({ axis: -1 }) });
}
