import type { RunnableModel } from "../evaluate/model-session.ts";
import { type Sample, type TensorData, tensorNumbers } from "../evaluate/tensor-data.ts";

/** The input that says which tokens are padding, in exports of language models and embeddings. */
const maskName = "attention_mask";

/** Which positions of a sample are no padding; undefined where it does not say so. */
export function findMask(sample: Sample): boolean[] | undefined {
  const mask = sample.find(({ name }) => name === maskName);
  return mask && Array.from(tensorNumbers(mask), Boolean);
}

/**
 * A sample without the positions at its end that are padding in each row, where all inputs of the
 * model are values by position, and there may be any number of these.
 */
export function cutPadding(
  sample: Sample,
  { signature }: Pick<RunnableModel, "signature">,
): Sample {
  const mask = findMask(sample);
  const [rows, positions, ...others] = sample.find(({ name }) => name === maskName)?.shape ?? [];
  if (mask === undefined || rows === undefined || positions === undefined) return sample;
  const isOfPositions =
    others.length === 0 &&
    signature.inputs.every((input) => input.isTensor && typeof input.shape[1] === "string") &&
    sample.every(({ shape }) => shape.length === 2 && shape[0] === rows && shape[1] === positions);
  if (!isOfPositions) return sample;
  const isUsed = (position: number) =>
    mask.some((used, index) => used && index % positions === position);
  let used = positions;
  while (used > 1 && !isUsed(used - 1)) used -= 1;
  return used === positions ? sample : sample.map((tensor) => cutRows(tensor, used));
}

function cutRows(tensor: TensorData, length: number): TensorData {
  const [rows = 0, former = 0] = tensor.shape;
  const [bytes, pitch] = [
    (tensor.bytes.length / (rows * former)) * length,
    tensor.bytes.length / rows,
  ];
  const cut = new Uint8Array(rows * bytes);
  for (let row = 0; row < rows; row++) {
    cut.set(tensor.bytes.subarray(row * pitch, row * pitch + bytes), row * bytes);
  }
  return { ...tensor, shape: [rows, length], bytes: cut };
}
