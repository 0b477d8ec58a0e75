import { availableParallelism } from "node:os";
import { ServiceError } from "../contract/errors.ts";
import type { GateLimits } from "../contract/jobs/gate.ts";
import { type Latency, maxLatencyShapes } from "../contract/jobs/latency.ts";
import type { Evaluation } from "../contract/jobs/recipe.ts";
import type { Telemetry } from "../contract/jobs/telemetry.ts";
import { measureAccuracy } from "./accuracy/measure-accuracy.ts";
import { planModelRuns, type ModelRuns } from "./accuracy/model-run.ts";
import { readAvailableMemoryBytes } from "./accuracy/available-memory.ts";
import { recordOriginal, type Recording } from "./accuracy/record-original.ts";
import { SpoolMemory } from "./accuracy/tensor-spool.ts";
import { describeDevice } from "./evaluate/describe-device.ts";
import { lacksMemory } from "./runtime/label-runtime-errors.ts";
import { findDistinctSamples, type SampleOptions } from "./samples/open-samples.ts";
import type { EvaluationWarning } from "./evaluate/evaluation-warning.ts";
import type { Sample } from "./runtime/tensor-data.ts";
import { compareLatency } from "./latency/compare-latency.ts";

interface EvaluationFigures extends Pick<
  Telemetry,
  "accuracy" | "latency" | "memory" | "device" | "generated"
> {
  /** Those that were not given before. */
  readonly warnings?: EvaluationWarning[];
}

interface EvaluateOptions {
  readonly originalPath: string;
  readonly resultPath: string;
  readonly evaluation: Pick<Evaluation, "samples" | "latencyBudgetSeconds" | "minCosine"> &
    Pick<SampleOptions["evaluation"], "otherSamples">;
  readonly executionProvider: "cpu" | "cuda";
  /** Why the models are not to be timed, though they could be. */
  readonly timingObstacle?: string | undefined;
  /** Of the gates that compare latencies with the original's and with the baseline's. */
  readonly latencyLimits?: Pick<GateLimits, "maxLatencyRatio" | "maxLatencyRegression">;
  /**
   * A local `.npz` file with an array for each input, or text or tokens for a language model;
   * without it, data is generated, or the built-in text where there is a tokenizer.
   */
  readonly dataPath?: string | undefined;
  /** The checkpoint that the original was written from, which has its tokenizer. */
  readonly checkpointPath?: string | undefined;
  /** Threads of each operator; as many as the machine runs at once where it is absent. */
  readonly threads?: number | undefined;
  /** ONNX file of the baseline's result, which the result is timed against too. */
  readonly baselinePath?: string | undefined;
  /** Folder for files that live as long as the call. */
  readonly scratchDirectory: string;
  /** Memory that sessions may take, bytes; what is available where it is absent. */
  readonly availableBytes?: number;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  /** Called with figures as soon as they are known, also with those that fail the evaluation. */
  readonly onMeasured: (figures: EvaluationFigures) => void;
  readonly log: (line: string) => void;
}

/** Fractions of the work after each of its steps. */
const steps = { record: 0.25, compare: 0.5, time: 1 };

/** Most bytes of tensors that are kept in memory, and their share of the available memory. */
const spoolLimit = { bytes: 256 * 1024 ** 2, share: 1 / 16 };

/**
 * Runs the original and then the result on the same samples, and compares every output
 * (`OutputAccuracy` says what the figures mean); then times both. A model that does not fit into
 * the available memory is run in stages, and is not timed; nor are two that do not fit into the
 * machine's or the GPU's beside each other.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run, or one of its nodes
 * does not fit into memory; evaluation_data_invalid if the caller's data does not fit the original;
 * accuracy_below_floor if an output's cosine on the caller's data is below `evaluation.minCosine`
 * @throws the signal's reason if it was aborted; no process is left then
 */
export async function evaluateModels(options: EvaluateOptions): Promise<void> {
  const { executionProvider, signal, onMeasured } = options;
  signal.throwIfAborted();
  const threads = options.threads ?? availableParallelism();
  onMeasured({ device: await describeDevice(executionProvider, threads) });
  const availableBytes = options.availableBytes ?? (await readAvailableMemoryBytes());
  const spoolBytes = Math.min(spoolLimit.bytes, availableBytes * spoolLimit.share);
  const settings = { ...options, threads, spoolMemory: new SpoolMemory(spoolBytes) };
  const runs = await planModelRuns(options.originalPath, options.resultPath, availableBytes);
  await using recording = await recordOriginal(runs.original, {
    ...settings,
    onProgress: scaleProgress(options, 0, steps.record),
  });
  const { generated } = recording.source;
  if (generated !== undefined) onMeasured({ generated });
  const { error, ...measured } = await measureAccuracy(runs.result, recording, {
    ...settings,
    minCosine: options.evaluation.minCosine,
    onProgress: scaleProgress(options, steps.record, steps.compare),
  });
  onMeasured(measured);
  if (error !== undefined) throw error;
  await measureTimes(runs, recording, settings);
  options.onProgress(steps.time, "Evaluated");
}

type Settings = EvaluateOptions & { readonly threads: number; readonly spoolMemory: SpoolMemory };

async function measureTimes(
  runs: ModelRuns,
  { source }: Recording,
  settings: Settings,
): Promise<void> {
  const leaveUntimed = (obstacle: string) => {
    const message = `Latency was not timed: ${obstacle}`;
    settings.onMeasured({ warnings: [{ code: "latency_not_timed", message }] });
  };
  const budgetSeconds = settings.evaluation.latencyBudgetSeconds;
  const unasked =
    budgetSeconds === 0 ? "the recipe's evaluation.latencyBudgetSeconds is 0" : undefined;
  const obstacle = settings.timingObstacle ?? runs.timingObstacle ?? unasked;
  if (obstacle !== undefined) return leaveUntimed(obstacle);
  settings.log(`Timing both models for ${budgetSeconds} s at most, ${settings.threads} threads`);
  const distinct = await findDistinctSamples(source, settings.executionProvider);
  const timing = { ...settings, samples: distinct.slice(0, maxLatencyShapes), budgetSeconds };
  const onProgress = scaleProgress(settings, steps.compare, steps.time);
  const limit = settings.latencyLimits?.maxLatencyRatio;
  try {
    const { latency, warnings } = await compareLatency({ ...timing, limit, onProgress });
    settings.onMeasured({ latency, warnings: [...warnings] });
    await timeBaseline(latency, timing);
  } catch (error) {
    // Each has run by itself, so that this says nothing of the result.
    if (!lacksMemory(error)) throw error;
    leaveUntimed(`both models together do not fit into memory. ${error.message}`);
  }
}

/** Times the result against the baseline's. That it cannot be run says nothing of the result. */
async function timeBaseline(
  latency: Latency,
  timing: Settings & { readonly samples: readonly Sample[]; readonly budgetSeconds: number },
): Promise<void> {
  const { baselinePath, signal, onMeasured, onProgress } = timing;
  const { maxLatencyRegression } = timing.latencyLimits ?? {};
  if (baselinePath === undefined) return;
  try {
    const timed = await compareLatency({
      ...timing,
      originalPath: baselinePath,
      limit: maxLatencyRegression === undefined ? undefined : 1 + maxLatencyRegression,
      onProgress: (_, message) => onProgress(steps.time, `${message}, with the baseline's result`),
    });
    const { ratio, ratioLow, ratioHigh, sessions } = timed.latency;
    onMeasured({ latency: { ...latency, baseline: { ratio, ratioLow, ratioHigh, sessions } } });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    const message = `The baseline's result could not be timed: ${error.message}`;
    onMeasured({ warnings: [{ code: "baseline_not_timed", message }] });
  }
}

function scaleProgress(
  { onProgress }: Pick<EvaluateOptions, "onProgress">,
  from: number,
  to: number,
): EvaluateOptions["onProgress"] {
  return (fraction, message) => onProgress(from + fraction * (to - from), message);
}
