import type { TensorProto } from "../onnx/onnx_pb.js";
import type { Weight } from "./find-weights.ts";

export function weightDims({ tensor }: Weight): number[] {
  return tensorDims(tensor);
}

export function tensorDims({ dims }: TensorProto): number[] {
  return dims.map(Number);
}
