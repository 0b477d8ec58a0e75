import { type Accuracy, maxReportedOutputs } from "../../contract/jobs/telemetry.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import { summarizeOutputAccuracy, type OutputComparison } from "./output-comparison.ts";
import { isExercised } from "./output-response.ts";
import type { SampleSource } from "../samples/open-samples.ts";
import { quoteName } from "../../contract/text/quote-name.ts";

interface AccuracySummary {
  /** Absent where no output is exercised. */
  readonly accuracy?: Accuracy;
  readonly warnings: readonly EvaluationWarning[];
}

type SampleCounts = Pick<SampleSource, "data" | "count" | "unused">;

/** @param boundedOutputs names of outputs between 0 and 1 */
export function summarizeAccuracy(
  comparisons: readonly OutputComparison[],
  source: SampleCounts,
  boundedOutputs: ReadonlySet<string>,
): AccuracySummary {
  const [idle, exercised] = [false, true].map((wanted) =>
    comparisons.filter(({ name, response, sums }) => {
      return isExercised(response, sums, boundedOutputs.has(name)) === wanted;
    }),
  );
  const warnings = comparisonWarnings(comparisons, source);
  if (!idle || !exercised || idle.length === 0) {
    return { accuracy: describeAccuracy(comparisons, source), warnings };
  }
  const notExercised = idle.map(({ name }) => name);
  const all = [...warnings, describeNotExercised(notExercised, source)];
  if (exercised.length === 0) return { warnings: all };
  const accuracy = describeAccuracy(exercised, source);
  const reported = notExercised.slice(0, maxReportedOutputs);
  return { accuracy: { ...accuracy, notExercised: reported }, warnings: all };
}

function describeNotExercised(
  names: readonly string[],
  { data, count }: SampleCounts,
): EvaluationWarning {
  const [first = ""] = names;
  const which = names.length === 1 ? `Output ${quoteName(first)}` : `${names.length} outputs`;
  const example = names.length === 1 ? "" : `, such as ${quoteName(first)},`;
  const advice = data === "generated" ? "give evaluation data" : "give samples that it responds to";
  const samples = formatCount(count, `${data} sample`);
  const problem = `hardly differs between the ${samples}, and was not compared`;
  const message = `${which}${example} of the original ${problem}; ${advice}`;
  return { code: "output_not_exercised", message };
}

/** Says which output is too far from the original's; undefined where none is. */
export function describeLowAccuracy(accuracy: Accuracy, minCosine: number): string | undefined {
  if (accuracy.cosine >= minCosine) return undefined;
  const worst = accuracy.outputs.find(({ cosine }) => cosine === accuracy.cosine);
  const output = worst === undefined ? "An output" : `Output "${worst.name}"`;
  const cosine = `cosine similarity ${accuracy.cosine.toFixed(4)} to the original's`;
  return `${output} has ${cosine}; at least ${minCosine} is required`;
}

function describeAccuracy(
  comparisons: readonly OutputComparison[],
  { data, count }: SampleCounts,
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
  { count, unused }: SampleCounts,
): EvaluationWarning[] {
  const warnings = comparisons
    .filter(({ reshapedSamples }) => reshapedSamples > 0)
    .map((comparison) => describeReshaped(comparison, count));
  if (unused > 0) {
    const samples = `${formatCount(unused, "sample")} of the evaluation data`;
    const were = unused === 1 ? "was" : "were";
    warnings.push({ code: "samples_left_out", message: `${samples} ${were} not used` });
  }
  if (comparisons.length > maxReportedOutputs) {
    const reported = `the ${maxReportedOutputs} with the lowest SQNR are reported`;
    const message = `The model has ${comparisons.length} outputs; ${reported}`;
    warnings.push({ code: "outputs_left_out", message });
  }
  return warnings;
}

function describeReshaped(
  { name, reshapedSamples }: OutputComparison,
  count: number,
): EvaluationWarning {
  const samples = `${reshapedSamples} of ${count} samples, which count as zeros`;
  const message = `Output "${name}" has another shape than the original's in ${samples}`;
  return { code: "output_shape_differs", message };
}
