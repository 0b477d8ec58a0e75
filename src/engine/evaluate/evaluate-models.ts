import { availableParallelism } from "node:os";
import type { Evaluation } from "../../contract/recipe.ts";
import type { Latency } from "../../contract/latency.ts";
import type { Accuracy, Telemetry } from "../../contract/telemetry.ts";
import { chooseLatencySamples } from "./choose-latency-samples.ts";
import { comparableOutputs } from "./comparable-outputs.ts";
import { compareLatency, type LatencyComparison } from "./compare-latency.ts";
import { compareOnSamples } from "./compare-on-samples.ts";
import { describeDevice } from "./describe-device.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import { labelRuntimeErrors } from "./label-runtime-errors.ts";
import type { ModelPair } from "./model-pair.ts";
import { ModelSession } from "./model-session.ts";
import { openSamples } from "./open-samples.ts";
import { summarizeAccuracy } from "./summarize-accuracy.ts";

interface EvaluateOptions {
  readonly originalPath: string;
  readonly resultPath: string;
  readonly evaluation: Pick<Evaluation, "samples" | "latencyBudgetSeconds" | "minCosine">;
  readonly executionProvider: "cpu" | "cuda";
  /** A local `.npz` file with an array for each input; without it, data is generated. */
  readonly dataPath?: string | undefined;
  /** Threads of each operator; as many as the machine runs at once where it is absent. */
  readonly threads?: number | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

const latencyNotTimed: EvaluationWarning = {
  code: "latency_not_timed",
  message: "The recipe's evaluation.latencyBudgetSeconds is 0, so no latency was measured",
};

interface ModelEvaluation {
  readonly accuracy: Accuracy;
  readonly latency?: Latency;
  readonly memory: { readonly originalPeakBytes: number; readonly resultPeakBytes: number };
  readonly device: NonNullable<Telemetry["device"]>;
  readonly warnings: EvaluationWarning[];
}

/** Fraction of the work that the comparison counts for; the timed runs are the rest. */
const comparisonShare = 0.5;

/**
 * Runs original and result on the same samples, each in a process of its own, and compares every
 * output (`OutputAccuracy` says what the figures mean); then times both.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run,
 * evaluation_data_invalid if the caller's data does not fit the original, accuracy_below_floor if
 * an output's cosine on the caller's data is below `evaluation.minCosine`
 * @throws the signal's reason if it was aborted; no process is left then
 */
export async function evaluateModels(options: EvaluateOptions): Promise<ModelEvaluation> {
  const threads = options.threads ?? availableParallelism();
  const device = await describeDevice(options.executionProvider, threads);
  await using original = await openSession("original", options, threads);
  await using result = await openSession("result", options, threads);
  const models = { original, result };
  const { accuracy, warnings } = await compareOutputs(models, options);
  const timed = await timeModels(models, options, threads);
  const originalPeakBytes = await original.readPeakMemory();
  const resultPeakBytes = await result.readPeakMemory();
  options.onProgress(1, "Evaluated");
  const memory = { originalPeakBytes, resultPeakBytes };
  return { accuracy, memory, device, ...timed, warnings: [...warnings, ...timed.warnings] };
}

async function openSession(
  which: keyof ModelPair,
  options: EvaluateOptions,
  threads: number,
): Promise<ModelSession> {
  const { executionProvider, signal, onProgress } = options;
  onProgress(0, `Loading the ${which}`);
  const path = which === "original" ? options.originalPath : options.resultPath;
  const opening = ModelSession.open(path, { executionProvider, threads, signal });
  return labelRuntimeErrors(which, opening, { signal });
}

async function compareOutputs(
  models: ModelPair,
  options: EvaluateOptions,
): Promise<Pick<ModelEvaluation, "accuracy" | "warnings">> {
  const { evaluation, signal, onProgress, log } = options;
  const { names: outputs, warnings } = comparableOutputs(models.original);
  await using source = await openSamples(models.original, { ...options, outputs });
  const { count } = source;
  const onSample = (done: number) =>
    onProgress((done / count) * comparisonShare, `Compared sample ${done} of ${count}`);
  const comparisons = await compareOnSamples(models, source, { outputs, signal, onSample, log });
  const summary = summarizeAccuracy(comparisons, source, evaluation.minCosine);
  return { accuracy: summary.accuracy, warnings: [...warnings, ...summary.warnings] };
}

async function timeModels(
  { original }: ModelPair,
  options: EvaluateOptions,
  threads: number,
): Promise<Partial<LatencyComparison> & Pick<LatencyComparison, "warnings">> {
  const { latencyBudgetSeconds: budgetSeconds } = options.evaluation;
  if (budgetSeconds === 0) return { warnings: [latencyNotTimed] };
  const { names: outputs } = comparableOutputs(original);
  await using source = await openSamples(original, { ...options, outputs });
  const samples = await chooseLatencySamples(source.samples);
  options.log(`Timing both models for ${budgetSeconds} s at most, ${threads} threads`);
  const onProgress = (fraction: number, message: string) =>
    options.onProgress(comparisonShare + fraction * (1 - comparisonShare), message);
  return await compareLatency({ ...options, samples, threads, budgetSeconds, onProgress });
}
