import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { WeightUse } from "./find-weights.ts";

/** The axis of a weight along which each slice makes an output of its own, by operator and input. */
type ChannelAxis = (node: NodeProto, rank: number) => number | undefined;

const last: ChannelAxis = (_, rank) => (rank >= 2 ? rank - 1 : undefined);
const first: ChannelAxis = () => 0;
const second: ChannelAxis = () => 1;

/** Every operator whose weights can be stored in fewer bits, with the inputs that hold them. */
const channelAxes: ReadonlyMap<string, ReadonlyMap<number, ChannelAxis>> = new Map([
  ["Conv", new Map([[1, first]])],
  ["ConvTranspose", new Map([[1, second]])],
  ["DeformConv", new Map([[1, first]])],
  [
    "MatMul",
    new Map([
      [0, (_: NodeProto, rank: number) => (rank >= 2 ? rank - 2 : undefined)],
      [1, last],
    ]),
  ],
  [
    "Gemm",
    new Map([
      [0, (node: NodeProto) => (isSet(node, "transA") ? 1 : 0)],
      [1, (node: NodeProto) => (isSet(node, "transB") ? 0 : 1)],
    ]),
  ],
  ["Gather", new Map([[0, (node: NodeProto, rank: number) => gatherAxis(node, rank)]])],
  ["LSTM", recurrent()],
  ["GRU", recurrent()],
  ["RNN", recurrent()],
  ["com.microsoft:Attention", new Map([[1, second]])],
  ["com.microsoft:FusedConv", new Map([[1, first]])],
  ["com.microsoft:FusedMatMul", new Map([[1, last]])],
]);

function recurrent(): ReadonlyMap<number, ChannelAxis> {
  return new Map([
    [1, second],
    [2, second],
  ]);
}

/** @returns undefined where the operator has no form that takes the weight in fewer bits */
export function channelAxis({ node, input }: WeightUse, rank: number): number | undefined {
  return channelAxes.get(operatorOf(node))?.get(input)?.(node, rank);
}

/** Operator with its domain, which is left out for standard ones. */
export function operatorOf(node: NodeProto): string {
  return node.domain === "" || node.domain === "ai.onnx" ? node.opType : `${node.domain}:${node.opType}`;
}

export function isSet(node: NodeProto, attribute: string): boolean {
  return (findAttribute(node, attribute)?.i ?? 0n) !== 0n;
}

export function gatherAxis(node: NodeProto, rank: number): number {
  const axis = Number(findAttribute(node, "axis")?.i ?? 0n);
  return axis < 0 ? axis + rank : axis;
}
