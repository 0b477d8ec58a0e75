import { addErrors, addMissingErrors, emptyErrorSums, errorMetrics } from "./error-metrics.ts";
import type { ErrorSums } from "../quantize/kernels/error-sums.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import { isElementType, type TensorData, tensorNumbers } from "../runtime/tensor-data.ts";
import { addResponse, emptyResponse, type OutputResponse } from "./output-response.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { OutputAccuracy } from "../../contract/jobs/telemetry.ts";

/** Running comparison of one output over samples. */
export interface OutputComparison {
  readonly name: string;
  readonly sums: ErrorSums;
  /** Of the original. */
  elements: number;
  notFiniteElements: number;
  rows: number;
  agreeingRows: number;
  /** Samples for which original and result have different shapes. */
  reshapedSamples: number;
  readonly response: OutputResponse;
}

export function emptyOutputComparison(name: string): OutputComparison {
  const elements = { elements: 0, notFiniteElements: 0 };
  const rows = { rows: 0, agreeingRows: 0, reshapedSamples: 0 };
  return { name, sums: emptyErrorSums(), ...elements, ...rows, response: emptyResponse() };
}

/** Adds one sample's tensors. A result of another shape counts as zeros. */
export function addSampleOutput(
  comparison: OutputComparison,
  original: TensorData,
  result: TensorData,
): void {
  const originalNumbers = tensorNumbers(original);
  const rowLength = original.type === "bool" ? 1 : (original.shape.at(-1) ?? 1);
  const rows = rowLength > 1 ? originalNumbers.length / rowLength : 0;
  comparison.rows += rows;
  comparison.elements += originalNumbers.length;
  comparison.notFiniteElements += countNotFinite(originalNumbers);
  if (original.type.startsWith("float"))
    addResponse(comparison.response, originalNumbers, rowLength);
  if (original.shape.join() !== result.shape.join()) {
    comparison.reshapedSamples += 1;
    addMissingErrors(comparison.sums, originalNumbers);
    return;
  }
  const resultNumbers = tensorNumbers(result);
  addErrors(comparison.sums, originalNumbers, resultNumbers);
  for (let row = 0; row < rows; row++) {
    const range = { start: row * rowLength, length: rowLength };
    if (hasSameTop1(originalNumbers, resultNumbers, range)) comparison.agreeingRows += 1;
  }
}

export function summarizeOutputAccuracy(comparison: OutputComparison): OutputAccuracy {
  const { name, rows, agreeingRows } = comparison;
  return {
    name,
    ...errorMetrics(comparison.sums),
    top1Agreement: rows === 0 ? null : agreeingRows / rows,
  };
}

function countNotFinite(numbers: ArrayLike<number>): number {
  let count = 0;
  for (let index = 0; index < numbers.length; index++) {
    if (!Number.isFinite(numbers[index])) count += 1;
  }
  return count;
}

/** Whether the original has its largest element, or an equal one, where the result has it. */
function hasSameTop1(
  original: ArrayLike<number>,
  result: ArrayLike<number>,
  { start, length }: { start: number; length: number },
): boolean {
  const largest = indexOfLargest(original, start, length);
  const candidate = indexOfLargest(result, start, length);
  return candidate === largest || original[candidate] === original[largest];
}

/** Index of the first largest element; NaN is never the largest, and a row of NaN has `start`. */
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

interface ComparableOutputs {
  readonly names: readonly string[];
  /** One for each other output. */
  readonly warnings: readonly EvaluationWarning[];
}

/** Outputs that are tensors of numbers; fetching some of the others ends the process. */
export function comparableOutputs({
  signature,
}: Pick<RunnableModel, "signature">): ComparableOutputs {
  const names: string[] = [];
  const warnings: EvaluationWarning[] = [];
  for (const output of signature.outputs) {
    if (output.isTensor && isElementType(output.type)) {
      names.push(output.name);
    } else {
      const content = output.isTensor ? `elements of type ${output.type}` : "no tensor";
      const message = `Output "${output.name}" holds ${content} and was not compared`;
      warnings.push({ code: "output_not_compared", message });
    }
  }
  if (names.length === 0) {
    const message = "The model has no output that holds a tensor of numbers";
    throw new ServiceError("evaluation_failed", message);
  }
  return { names, warnings };
}
