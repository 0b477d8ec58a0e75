import { ServiceError } from "../../contract/errors.ts";
import type { Accuracy } from "../../contract/telemetry.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import type { SampleSource } from "./open-samples.ts";
import { summarizeOutputAccuracy, type OutputComparison } from "./output-comparison.ts";

/** Most outputs that a report names. */
const maxReportedOutputs = 64;

interface AccuracySummary {
  readonly accuracy: Accuracy;
  readonly warnings: readonly EvaluationWarning[];
}

/** @throws ServiceError accuracy_below_floor on the caller's data; else that is a warning */
export function summarizeAccuracy(
  comparisons: readonly OutputComparison[],
  source: SampleSource,
  minCosine: number,
): AccuracySummary {
  const accuracy = describeAccuracy(comparisons, source);
  const warnings = [
    ...comparisonWarnings(comparisons, source),
    ...checkAccuracyFloor(accuracy, minCosine),
  ];
  return { accuracy, warnings };
}

function describeAccuracy(
  comparisons: readonly OutputComparison[],
  { data, count }: SampleSource,
): Accuracy {
  const worstFirst = comparisons
    .map(summarizeOutputAccuracy)
    .toSorted((a, b) => a.sqnrDb - b.sqnrDb);
  const reported = new Set(worstFirst.slice(0, maxReportedOutputs).map(({ name }) => name));
  return {
    level: "outputs",
    data,
    samples: count,
    sqnrDb: Math.min(...worstFirst.map(({ sqnrDb }) => sqnrDb)),
    cosine: Math.min(...worstFirst.map(({ cosine }) => cosine)),
    outputs: comparisons.filter(({ name }) => reported.has(name)).map(summarizeOutputAccuracy),
  };
}

function comparisonWarnings(
  comparisons: readonly OutputComparison[],
  { count }: SampleSource,
): EvaluationWarning[] {
  const warnings = comparisons
    .filter(({ reshapedSamples }) => reshapedSamples > 0)
    .map((comparison) => describeReshaped(comparison, count));
  if (comparisons.length <= maxReportedOutputs) return warnings;
  const reported = `the ${maxReportedOutputs} with the lowest SQNR are reported`;
  const message = `The model has ${comparisons.length} outputs; ${reported}`;
  return [...warnings, { code: "outputs_left_out", message }];
}

function describeReshaped(
  { name, reshapedSamples }: OutputComparison,
  count: number,
): EvaluationWarning {
  const samples = `${reshapedSamples} of ${count} samples, which count as zeros`;
  const message = `Output "${name}" has another shape than the original's in ${samples}`;
  return { code: "output_shape_differs", message };
}

function checkAccuracyFloor(accuracy: Accuracy, minCosine: number): EvaluationWarning[] {
  const worst = accuracy.outputs.find(({ cosine }) => cosine === accuracy.cosine);
  if (!worst || worst.cosine >= minCosine) return [];
  const cosine = `cosine similarity ${worst.cosine.toFixed(4)} to the original's`;
  const message = `Output "${worst.name}" has ${cosine}; at least ${minCosine} is required`;
  if (accuracy.data === "caller") throw new ServiceError("accuracy_below_floor", message);
  return [{ code: "accuracy_below_floor", message: `${message} (on generated data)` }];
}
