import type { ErrorSums } from "../quantize/kernels/error-sums.ts";

/** How much an output of the original differs between rows along its last axis, of all samples. */
export interface OutputResponse {
  /** The first row, which the others are compared with. */
  reference: Float64Array | undefined;
  rows: number;
  elements: number;
  largestDifference: number;
  largestMagnitude: number;
}

export function emptyResponse(): OutputResponse {
  const largest = { largestDifference: 0, largestMagnitude: 0 };
  return { reference: undefined, rows: 0, elements: 0, ...largest };
}

/** Adds the rows of one sample's tensor of floats. Elements that are not finite do not count. */
export function addResponse(
  response: OutputResponse,
  numbers: ArrayLike<number>,
  rowLength: number,
): void {
  if (numbers.length === 0) return;
  response.reference ??= Float64Array.from({ length: rowLength }, (_, at) => Number(numbers[at]));
  const { reference } = response;
  let { largestDifference, largestMagnitude } = response;
  for (let index = 0; index < numbers.length; index++) {
    const value = Number(numbers[index]);
    const difference = Math.abs(value - Number(reference[index % rowLength] ?? value));
    if (difference > largestDifference && Number.isFinite(difference)) {
      largestDifference = difference;
    }
    const magnitude = Math.abs(value);
    if (magnitude > largestMagnitude && Number.isFinite(magnitude)) largestMagnitude = magnitude;
  }
  Object.assign(response, { largestDifference, largestMagnitude });
  response.elements += numbers.length;
  response.rows += numbers.length / rowLength;
}

/** Fewer rows can be alike by chance. */
const leastRows = 4;
/** Least difference between rows, as a share of 1, of an output that is between 0 and 1. */
const leastBoundedResponse = 0.05;
/** The same of another output, as a share of its largest magnitude. */
const leastResponse = 1e-3;
/** Largest error that counts as no error of an output that does not respond, as a share as above. */
const largestError = 0.05;

/**
 * Whether an output differs enough between rows for an error of the result to mean something. One
 * that a result moves away from where the original has it is exercised: it is wrong.
 * @param isBounded whether it comes from a Sigmoid or a Softmax
 */
export function isExercised(
  { rows, elements, largestDifference, largestMagnitude }: OutputResponse,
  { noise, notFinite }: ErrorSums,
  isBounded: boolean,
): boolean {
  if (rows < leastRows || notFinite) return true;
  const scale = isBounded ? 1 : largestMagnitude;
  if (largestDifference >= scale * (isBounded ? leastBoundedResponse : leastResponse)) return true;
  return Math.sqrt(noise / elements) > largestError * scale;
}
