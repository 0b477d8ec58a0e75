import { describeInterface, type ModelInterface } from "./describe-interface.ts";
import { errorMetrics, type ErrorMetrics } from "./evaluate/error-metrics.ts";
import type { ErrorSums } from "./quantize/kernels/error-sums.ts";
import { elementTypeName } from "./onnx/element-type.ts";
import type { WrittenFile } from "./onnx/write-model.ts";
import type { ModelCalibration } from "./calibrate-model.ts";
import type { FoundRecipe, WeightSensitivity } from "./describe-search.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import type { TaskResult } from "./quantize/tasks/weight-task.ts";
import { isStatic } from "./quantize/formats/multiply-static.ts";
import { isSmoothed } from "./quantize/formats/smoothed-input.ts";
import type { QdqFindings } from "./quantize/formats/find-unfused.ts";
import type { WeightOperation } from "./quantize/weight-format.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import type { RangeMethod, Recipe } from "../contract/jobs/recipe.ts";
import type { SearchSummary } from "../contract/jobs/search.ts";
import type { Telemetry } from "../contract/jobs/telemetry.ts";
import type { WarningCode } from "../contract/jobs/warnings.ts";
import { textLimits } from "../contract/limits.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { truncate } from "../contract/text/truncate.ts";
import { quoteName } from "../contract/text/quote-name.ts";

export interface WeightReport extends WeightSensitivity {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dataType: string;
  readonly originalBytes: number;
  readonly resultBytes: number;
  /** Operators that use the weight. */
  readonly usedBy: readonly string[];
  /** The form of the weight in the result; null where it does not change. */
  readonly form: string | null;
  /** Why the weight does not change or does not get the recipe's own scheme. */
  readonly reason: string | null;
  /** Difference of the weight's new form from the original; null where it is not rounded. */
  readonly error: ErrorMetrics | null;
}

export interface CompressionReport {
  /** The result's files, the ONNX file first. */
  readonly files: readonly WrittenFile[];
  readonly originalBytes: number;
  readonly resultBytes: number;
  readonly shards: number;
  /** Positions of the weights that are restored at load, as times and losses decided. */
  readonly restoredAtLoad: readonly number[];
  /** Positions of the weights that are stored in half precision, as losses decided. */
  readonly halved: readonly number[];
  readonly weights: readonly WeightReport[];
  /** What weights have where none has the form that the recipe asks for first, and why. */
  readonly choice: string | undefined;
  readonly warnings: readonly CompressionWarning[];
  /** Of the result too: it takes and gives the same. */
  readonly interface: ModelInterface;
  /** How the recipe was found where the caller's has a goal; undefined for other recipes. */
  readonly search: SearchSummary | undefined;
  /** The recipe that was found. */
  readonly foundRecipe: Recipe | undefined;
  /** What the rounding was fitted to; undefined where it was not. */
  readonly calibration: Telemetry["calibration"];
  /** How the recipe's runtime takes what is rounded by ranges; undefined where none are known. */
  readonly qdq: QdqFindings | undefined;
}

interface Measured {
  readonly results: readonly TaskResult[];
  /** Absent where nothing was observed, though the recipe may ask for it. */
  readonly calibration?: ModelCalibration | undefined;
  /** How ranges of activations were found; undefined where there are none. */
  readonly method?: RangeMethod | undefined;
  readonly correctsBiases?: boolean | undefined;
  readonly found?: FoundRecipe | undefined;
}

export function buildCompressionReport(
  plan: CompressionPlan,
  written: Pick<CompressionReport, "files" | "restoredAtLoad" | "halved">,
  { results, calibration, method, correctsBiases, found }: Measured,
): CompressionReport {
  const summary = calibration?.summary;
  const fitted = summary && {
    ...summary,
    ...(method !== undefined && { method }),
    ...(correctsBiases !== undefined && { correctsBiases }),
    fittedWeights: countFitted(plan),
  };
  const sums = new Map(results.map((result) => [result.weight, result.sums]));
  return {
    ...written,
    originalBytes: plan.originalBytes,
    resultBytes: plan.resultBytes,
    shards: plan.shards.count,
    weights: plan.weights.map((weight) => {
      const { index } = weight.weight;
      const reported = reportWeight(weight, sums.get(index), plan.fused);
      return { ...reported, ...found?.sensitivities.get(index) };
    }),
    choice: describeFallback(plan),
    warnings: [
      ...listCompressionWarnings(plan),
      ...(calibration === undefined ? [] : warnOfCalibration(fitted)),
      ...warnOfSearch(found?.summary),
    ],
    search: found?.summary,
    foundRecipe: found?.recipe,
    calibration: fitted,
    qdq: plan.qdq,
    interface: describeInterface(plan.model.proto),
  };
}

function reportWeight(
  { weight, format, reason }: WeightPlan,
  error: ErrorSums | undefined,
  { weights: fused }: CompressionPlan["fused"],
): WeightReport {
  const own = fused.has(weight.tensor) ? "float32, with operators that became part of it" : null;
  return {
    name: weight.name,
    shape: weight.tensor.dims.map(Number),
    dataType: elementTypeName(weight.tensor.dataType),
    originalBytes: weight.bytes,
    resultBytes: format?.bytes ?? weight.bytes,
    usedBy: [...new Set(weight.consumers.map(({ node }) => node.opType))],
    form: format?.description ?? own,
    reason: reason ?? null,
    error: error === undefined ? null : errorMetrics(error),
  };
}

interface CompressionWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** Weights whose rounding, or that of the values beside them, follows from the calibration. */
function countFitted({ tasks, weights }: CompressionPlan): number {
  const rounded = tasks.filter((task) => task.kind === "blocks" && task.moments !== undefined);
  const scaled = weights.filter(({ format }) => isStatic(format) || isSmoothed(format));
  const corrected = tasks.filter(
    (task) =>
      task.kind === "linear" && task.bias !== undefined && !isStatic(weights[task.weight]?.format),
  );
  return rounded.length + scaled.length + corrected.length;
}

function warnOfCalibration(summary: Telemetry["calibration"]): CompressionWarning[] {
  if (summary === undefined) {
    const message =
      "The calibration was of no use: no product takes a weight in blocks, none takes in integers what " +
      "a normalization gives, and no rounded weight has a bias beside it";
    return [{ code: "calibration_unused", message }];
  }
  const { fittedWeights: count } = summary;
  if (count === 0) {
    const message = "The calibration was of no use: nothing of the result is fitted to its samples";
    return [{ code: "calibration_unused", message }];
  }
  const fitted = `The rounding, ranges or biases of ${formatCount(count, "weight")}`;
  const warnings: CompressionWarning[] = [];
  if (summary.data === "generated") {
    const message = `${fitted} fit generated samples`;
    warnings.push({ code: "calibrated_on_generated", message });
  }
  if (summary.samples === 1) {
    const message = `${fitted} fit a single sample`;
    warnings.push({ code: "calibrated_on_one_sample", message });
  }
  return warnings;
}

function warnOfSearch(summary: SearchSummary | undefined): CompressionWarning[] {
  if (summary === undefined) return [];
  const { missed, outOfBudget, candidates } = summary;
  const warnings: CompressionWarning[] = [];
  if (missed.length > 0) {
    const message = `The nearest result misses the goal: ${missed.join("; ")}`;
    warnings.push({ code: "goal_missed", message: truncate(message, textLimits.telemetryWarning) });
  }
  if (outOfBudget) {
    const message = `The search's budget ended after ${candidates} candidates; this is the best of them`;
    warnings.push({ code: "search_out_of_budget", message });
  }
  return warnings;
}

/** What a caller has to know of a plan that was carried out. */
function listCompressionWarnings(plan: CompressionPlan): CompressionWarning[] {
  return [...warnOfFixedInputs(plan), ...warnOfPatterns(plan), ...warnOfUnfused(plan)];
}

/** Whether a format is what a scheme asks for first. */
const hasSchemeForm: Readonly<
  Record<CompressionPlan["scheme"], (format: WeightPlan["format"]) => boolean>
> = {
  "int8-dynamic": (format) => format?.operations.some(isIntegerProduct) ?? false,
  "int8-static": isStatic,
  "int4-weight": (format) =>
    format !== undefined && "shape" in format.storage && format.storage.format.bits === 4,
  "int8-weight": () => true,
  fp16: (format) => format?.storage.kind === "half",
};

function isIntegerProduct(operation: WeightOperation): boolean {
  return operation === "integer-product" || operation === "recurrent-product";
}

/** What was chosen where no weight got what the recipe asks for first: nothing to act on. */
function describeFallback({ scheme, weights }: CompressionPlan): string | undefined {
  const quantized = weights.filter(({ format }) => format !== undefined);
  const [largest] = quantized.toSorted((a, b) => b.weight.bytes - a.weight.bytes);
  if (largest?.format === undefined) return undefined;
  if (quantized.some(({ format }) => hasSchemeForm[scheme](format))) return undefined;
  const example = `${quoteName(largest.weight.name)} ${largest.reason}`;
  const choice =
    `No weight has the recipe's own form; ${quantized.length} have another one, ` +
    `such as ${largest.format.description}: ${example}`;
  return truncate(choice, textLimits.telemetryWarning);
}

/** Inputs with a default value that became constants: callers cannot give them any more. */
function warnOfFixedInputs({ fixedInputs }: CompressionPlan): CompressionWarning[] {
  const [first] = fixedInputs;
  if (first === undefined) return [];
  const message =
    `${fixedInputs.length} inputs that have default values, such as ${quoteName(first)}, ` +
    "are constants in the result";
  return [{ code: "inputs_fixed", message: truncate(message, textLimits.telemetryWarning) }];
}

/** Patterns that a caller most likely meant for something. */
function warnOfPatterns({ unmatchedPatterns }: CompressionPlan): CompressionWarning[] {
  if (unmatchedPatterns.length === 0) return [];
  const patterns = unmatchedPatterns.map((pattern) => quoteName(pattern)).join(", ");
  const message = `No weight, and no node that takes one, matches the recipe's ${patterns}`;
  return [{ code: "patterns_unmatched", message: truncate(message, textLimits.telemetryWarning) }];
}

/** Operators that lose accuracy by rounding and gain nothing. */
function warnOfUnfused({ qdq }: CompressionPlan): CompressionWarning[] {
  const [first] = qdq?.unfused ?? [];
  if (qdq === undefined || first === undefined) return [];
  const { length: count } = qdq.unfused;
  const node = `${first.operator} ${quoteName(first.node)}`;
  const message =
    `${qdq.runtime} would run QuantizeLinear and DequantizeLinear by themselves at ` +
    `${count === 1 ? node : `${count} nodes, such as ${node}`}: it ${first.reason}`;
  return [{ code: "qdq_unfused", message: truncate(message, textLimits.telemetryWarning) }];
}
