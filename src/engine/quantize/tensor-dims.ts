import type { TensorProto } from "../onnx/onnx_pb.js";

export function tensorDims({ dims }: TensorProto): number[] {
  return dims.map(Number);
}
