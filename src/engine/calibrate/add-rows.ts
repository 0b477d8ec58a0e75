import { tensorNumbers, type TensorData } from "../evaluate/tensor-data.ts";

/** Adds up the rows of a tensor but those of padding: they are like no others, and of no use. */
export function addRows(
  sums: { readonly add: (rows: Float32Array) => void },
  tensor: TensorData,
  columns: number,
  mask: Uint8Array | undefined,
): void {
  if (tensor.shape.at(-1) !== columns) {
    const shape = `[${tensor.shape.join()}]`;
    throw new TypeError(`"${tensor.name}" has shape ${shape} and is to have rows of ${columns}`);
  }
  const numbers = tensorNumbers(tensor);
  const floats = numbers instanceof Float32Array ? numbers : Float32Array.from(numbers, Number);
  if (mask?.length !== floats.length / columns) {
    sums.add(floats);
    return;
  }
  let start = 0;
  for (const [row, isUsed] of [...mask, 0].entries()) {
    if (isUsed === 1) continue;
    if (row > start) sums.add(floats.subarray(start * columns, row * columns));
    start = row + 1;
  }
}
