import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { ValueUse } from "./graph-index.ts";

/** The axis of a weight along which each slice gives an output of its own. */
type ChannelAxis = (node: NodeProto, rank: number) => number | undefined;

const lastAxis: ChannelAxis = (_, rank) => (rank >= 2 ? rank - 1 : undefined);
const lastButOneAxis: ChannelAxis = (_, rank) => (rank >= 2 ? rank - 2 : undefined);
const firstAxis: ChannelAxis = () => 0;
const secondAxis: ChannelAxis = () => 1;
const gemmLeftAxis: ChannelAxis = (node) => (isAttributeSet(node, "transA") ? 1 : 0);
const gemmRightAxis: ChannelAxis = (node) => (isAttributeSet(node, "transB") ? 0 : 1);
const recurrentAxes = [
  [1, secondAxis],
  [2, secondAxis],
] as const;

/** Every operator whose weights can be quantized, with the inputs that are weights. */
const channelAxes: ReadonlyMap<string, ReadonlyMap<number, ChannelAxis>> = new Map([
  ["Conv", new Map([[1, firstAxis]])],
  ["ConvTranspose", new Map([[1, secondAxis]])],
  ["DeformConv", new Map([[1, firstAxis]])],
  ["MatMul", inputAxes(lastButOneAxis, lastAxis)],
  ["Gemm", inputAxes(gemmLeftAxis, gemmRightAxis)],
  ["Gather", new Map([[0, gatherAxis]])],
  ["LSTM", new Map(recurrentAxes)],
  ["GRU", new Map(recurrentAxes)],
  ["RNN", new Map(recurrentAxes)],
  [
    "com.microsoft:MoE",
    new Map([
      [2, lastAxis],
      [4, lastAxis],
      [6, lastAxis],
    ]),
  ],
  ["com.microsoft:Attention", new Map([[1, secondAxis]])],
  ["com.microsoft:FusedConv", new Map([[1, firstAxis]])],
  ["com.microsoft:FusedMatMul", inputAxes(lastButOneAxis, lastAxis)],
  ["com.microsoft:FusedGemm", inputAxes(gemmLeftAxis, gemmRightAxis)],
  [
    "com.microsoft:EmbedLayerNormalization",
    new Map([
      [2, firstAxis],
      [3, firstAxis],
      [4, firstAxis],
    ]),
  ],
]);

function inputAxes(...axes: readonly ChannelAxis[]): ReadonlyMap<number, ChannelAxis> {
  return new Map(axes.entries());
}

/** @returns undefined where the operator cannot take the weight quantized */
export function channelAxis({ node, input }: ValueUse, rank: number): number | undefined {
  return channelAxes.get(operatorName(node))?.get(input)?.(node, rank);
}

/** Operator with its domain, which is left out for standard ones. */
export function operatorName({ domain, opType }: NodeProto): string {
  return domain === "" || domain === "ai.onnx" ? opType : `${domain}:${opType}`;
}

export function isAttributeSet(node: NodeProto, attribute: string): boolean {
  return (findAttribute(node, attribute)?.i ?? 0n) !== 0n;
}

/** Whether a node gathers rows of a weight of that many dimensions. */
export function isRowGather({ node, input }: ValueUse, rank: number): boolean {
  return operatorName(node) === "Gather" && input === 0 && gatherAxis(node, rank) === 0;
}

function gatherAxis(node: NodeProto, rank: number): number {
  const axis = Number(findAttribute(node, "axis")?.i ?? 0n);
  return axis < 0 ? axis + rank : axis;
}
