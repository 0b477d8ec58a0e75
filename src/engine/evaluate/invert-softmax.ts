import { at } from "../onnx/at.ts";
import { type TensorData, tensorNumbers } from "../runtime/tensor-data.ts";

/** Smaller probabilities are as good as 0, which has no logarithm. */
const leastProbability = 1e-30;

/** What a softmax along the last axis was taken of, up to a number that rows have in common. */
export function invertSoftmax(tensor: TensorData): TensorData {
  const probabilities = tensorNumbers(tensor);
  const logits = new Float32Array(probabilities.length);
  const length = Math.max(1, tensor.shape.at(-1) ?? 1);
  for (let start = 0; start < logits.length; start += length) {
    let sum = 0;
    for (let index = start; index < start + length; index++) {
      const logit = Math.log(Math.max(at(probabilities, index), leastProbability));
      logits[index] = logit;
      sum += logit;
    }
    for (let index = start; index < start + length; index++) {
      logits[index] = at(logits, index) - sum / length;
    }
  }
  return { ...tensor, type: "float32", bytes: new Uint8Array(logits.buffer) };
}
