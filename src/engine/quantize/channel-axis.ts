import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { WeightUse } from "./find-weights.ts";

/** The axis of a weight along which each slice makes an output of its own, by operator and input. */
type ChannelAxis = (node: NodeProto, rank: number) => number | undefined;

const lastAxis: ChannelAxis = (_, rank) => (rank >= 2 ? rank - 1 : undefined);
const firstAxis: ChannelAxis = () => 0;
const secondAxis: ChannelAxis = () => 1;

/** Every operator whose weights can be stored in fewer bits, with the inputs that hold them. */
const channelAxes: ReadonlyMap<string, ReadonlyMap<number, ChannelAxis>> = new Map([
  ["Conv", new Map([[1, firstAxis]])],
  ["ConvTranspose", new Map([[1, secondAxis]])],
  ["DeformConv", new Map([[1, firstAxis]])],
  [
    "MatMul",
    new Map([
      [0, (_: NodeProto, rank: number) => (rank >= 2 ? rank - 2 : undefined)],
      [1, lastAxis],
    ]),
  ],
  [
    "Gemm",
    new Map([
      [0, (node: NodeProto) => (isAttributeSet(node, "transA") ? 1 : 0)],
      [1, (node: NodeProto) => (isAttributeSet(node, "transB") ? 0 : 1)],
    ]),
  ],
  ["Gather", new Map([[0, (node: NodeProto, rank: number) => gatherAxis(node, rank)]])],
  ["LSTM", recurrentWeightAxes()],
  ["GRU", recurrentWeightAxes()],
  ["RNN", recurrentWeightAxes()],
  ["com.microsoft:Attention", new Map([[1, secondAxis]])],
  ["com.microsoft:FusedConv", new Map([[1, firstAxis]])],
  ["com.microsoft:FusedMatMul", new Map([[1, lastAxis]])],
]);

function recurrentWeightAxes(): ReadonlyMap<number, ChannelAxis> {
  return new Map([
    [1, secondAxis],
    [2, secondAxis],
  ]);
}

/** @returns undefined where the operator has no form that takes the weight in fewer bits */
export function channelAxis({ node, input }: WeightUse, rank: number): number | undefined {
  return channelAxes.get(operatorName(node))?.get(input)?.(node, rank);
}

/** Operator with its domain, which is left out for standard ones. */
export function operatorName(node: NodeProto): string {
  return node.domain === "" || node.domain === "ai.onnx"
    ? node.opType
    : `${node.domain}:${node.opType}`;
}

export function isAttributeSet(node: NodeProto, attribute: string): boolean {
  return (findAttribute(node, attribute)?.i ?? 0n) !== 0n;
}

export function gatherAxis(node: NodeProto, rank: number): number {
  const axis = Number(findAttribute(node, "axis")?.i ?? 0n);
  return axis < 0 ? axis + rank : axis;
}
