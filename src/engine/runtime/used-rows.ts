import { tensorNumbers, type TensorData } from "./tensor-data.ts";

/**
 * The rows of a tensor but those of padding, which are like no others and of no use: runs of rows,
 * one after the other.
 * @param mask says which rows count, where it has as many as the tensor
 */
export function* usedRows(
  tensor: TensorData,
  columns: number,
  mask: Uint8Array | undefined,
): Generator<Float32Array> {
  if (tensor.shape.at(-1) !== columns) {
    const shape = `[${tensor.shape.join()}]`;
    throw new TypeError(`"${tensor.name}" has shape ${shape} and is to have rows of ${columns}`);
  }
  const numbers = tensorNumbers(tensor);
  const floats = numbers instanceof Float32Array ? numbers : Float32Array.from(numbers, Number);
  if (mask?.length !== floats.length / columns) {
    yield floats;
    return;
  }
  let start = 0;
  for (const [row, isUsed] of [...mask, 0].entries()) {
    if (isUsed === 1) continue;
    if (row > start) yield floats.subarray(start * columns, row * columns);
    start = row + 1;
  }
}
