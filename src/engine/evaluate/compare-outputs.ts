import type { OutputAccuracy } from "../../contract/telemetry.ts";
import { errorFigures } from "./error-figures.ts";
import { addErrors, addMissing, emptyErrorSums, type ErrorSums } from "./error-sums.ts";
import { numbersOf, type TensorBytes } from "./tensor-bytes.ts";

/** What has been seen of one output, over samples. */
export interface OutputComparison {
  readonly name: string;
  readonly sums: ErrorSums;
  rows: number;
  agreeingRows: number;
  /** Samples for which original and result gave tensors of different shapes. */
  reshapedSamples: number;
}

export function emptyOutputComparison(name: string): OutputComparison {
  return { name, sums: emptyErrorSums(), rows: 0, agreeingRows: 0, reshapedSamples: 0 };
}

/** Adds one sample's tensors. A result of another shape counts as zeros, since none of its elements has a counterpart. */
export function addOutput(comparison: OutputComparison, original: TensorBytes, result: TensorBytes): void {
  const originalNumbers = numbersOf(original);
  const rowLength = original.type === "bool" ? 1 : (original.shape.at(-1) ?? 1);
  const rows = rowLength > 1 ? originalNumbers.length / rowLength : 0;
  comparison.rows += rows;
  if (original.shape.join() !== result.shape.join()) {
    comparison.reshapedSamples += 1;
    addMissing(comparison.sums, originalNumbers);
    return;
  }
  const resultNumbers = numbersOf(result);
  addErrors(comparison.sums, originalNumbers, resultNumbers);
  for (let row = 0; row < rows; row++) {
    if (sameLargest(originalNumbers, resultNumbers, { start: row * rowLength, length: rowLength })) {
      comparison.agreeingRows += 1;
    }
  }
}

export function outputAccuracyOf(comparison: OutputComparison): OutputAccuracy {
  const { name, rows, agreeingRows } = comparison;
  return { name, ...errorFigures(comparison.sums), top1Agreement: rows === 0 ? null : agreeingRows / rows };
}

/** Whether the result's largest element stands where the original has its largest, or one equal to it. */
function sameLargest(
  original: ArrayLike<number>,
  result: ArrayLike<number>,
  { start, length }: { start: number; length: number },
): boolean {
  const largest = indexOfLargest(original, start, length);
  const candidate = indexOfLargest(result, start, length);
  return candidate === largest || original[candidate] === original[largest];
}

/** Index of the first largest element; NaN is never the largest, and `start` stands for a row of nothing else. */
function indexOfLargest(values: ArrayLike<number>, start: number, length: number): number {
  let largest = start;
  let value = -Infinity;
  for (let index = start; index < start + length; index++) {
    const candidate = Number(values[index]);
    if (candidate > value) {
      value = candidate;
      largest = index;
    }
  }
  return largest;
}
