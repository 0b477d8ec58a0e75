import { Tensor } from "onnxruntime-node";
import { rawTensorElements, type TensorData } from "./tensor-data.ts";

/**
 * The runtime does not copy inputs, and some of its kernels round otherwise on memory that is less
 * aligned than its own. Resizable buffers start at a page.
 */
export function createAlignedTensor({ type, shape, bytes }: TensorData): Tensor {
  const aligned = new Uint8Array(
    new ArrayBuffer(bytes.length, { maxByteLength: bytes.length }),
    0,
    bytes.length,
  );
  aligned.set(bytes);
  return new Tensor(type, rawTensorElements({ type, bytes: aligned }), shape);
}
