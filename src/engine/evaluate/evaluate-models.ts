import { availableParallelism } from "node:os";
import { ServiceError, type ErrorCode } from "../../contract/errors.ts";
import type { Evaluation } from "../../contract/recipe.ts";
import type { Accuracy, Latency, Telemetry } from "../../contract/telemetry.ts";
import {
  addSampleOutput,
  emptyOutputComparison,
  summarizeOutputAccuracy,
  type OutputComparison,
} from "./output-comparison.ts";
import { describeDevice } from "./describe-device.ts";
import { ModelSession } from "./model-session.ts";
import { describeShapes, openSamples, type SampleSource } from "./open-samples.ts";
import { percentile } from "./percentile.ts";
import { elementType } from "./tensor-data.ts";

type Warning = Telemetry["warnings"][number];

export interface EvaluateOptions {
  originalPath: string;
  resultPath: string;
  /** `level` and `data` are the caller's business: this is level `outputs`, on the file at `dataPath`. */
  evaluation: Pick<Evaluation, "samples" | "runs" | "warmup" | "minCosine">;
  executionProvider: "cpu" | "cuda";
  /** A local `.npz` file with an array for each input; without it, data is generated. */
  dataPath?: string | undefined;
  /** Threads of each operator; as many as the machine runs at once where it is absent. */
  threads?: number | undefined;
  signal: AbortSignal;
  onProgress: (fraction: number, message: string) => void;
  log: (line: string) => void;
}

export interface ModelEvaluation {
  accuracy: Accuracy;
  latency: NonNullable<Telemetry["latency"]>;
  memory: { originalPeakBytes: number; resultPeakBytes: number };
  device: NonNullable<Telemetry["device"]>;
  warnings: Warning[];
}

/** Most outputs that a report names. */
const maxReportedOutputs = 64;
/** Share of the work that the comparison counts for; the timed runs are the rest. */
const comparisonShare = 0.5;

interface ModelPair {
  original: ModelSession;
  result: ModelSession;
}

/**
 * Runs original and result on the same samples, each in a process of its own, and compares every output (`OutputAccuracy` says what
 * the figures mean); then times both in turns on the last sample, so that a change of the machine's load meets both alike.
 *
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run, evaluation_data_invalid if the caller's data does not
 * fit the original, accuracy_below_floor if an output's cosine on the caller's data is below `evaluation.minCosine`.
 * @throws the signal's reason if it was aborted; no process is left then.
 */
export async function evaluateModels(options: EvaluateOptions): Promise<ModelEvaluation> {
  const { executionProvider, evaluation, signal, onProgress, log } = options;
  const threads = options.threads ?? availableParallelism();
  const device = await describeDevice(executionProvider, threads);
  const sessionOptions = { executionProvider, threads, signal };
  onProgress(0, "Loading the original");
  await using original = await labelRuntimeErrors(
    "original",
    signal,
    ModelSession.open(options.originalPath, sessionOptions),
  );
  onProgress(0, "Loading the result");
  await using result = await labelRuntimeErrors(
    "result",
    signal,
    ModelSession.open(options.resultPath, sessionOptions),
  );
  const models = { original, result };

  const { names, warnings } = comparableOutputs(original);
  await using source = await openSamples(original, { ...options, outputs: names });
  const comparisons = await compareOnSamples(models, source, { ...options, outputs: names });
  const accuracy = summarizeAccuracy(comparisons, source);
  warnings.push(
    ...comparisonWarnings(comparisons, source),
    ...checkAccuracyFloor(accuracy, evaluation.minCosine),
  );

  log(
    `Timing ${evaluation.runs} runs of each model in turns after ${evaluation.warmup} of warm-up, ${threads} threads`,
  );
  const latency = await measureLatency(models, options);
  const [originalPeakBytes, resultPeakBytes] = [
    await original.readPeakMemory(),
    await result.readPeakMemory(),
  ];
  onProgress(1, "Evaluated");
  return { accuracy, latency, memory: { originalPeakBytes, resultPeakBytes }, device, warnings };
}

/** Says which model an error of the runtime is about. */
async function labelRuntimeErrors<T>(
  which: keyof ModelPair,
  signal: AbortSignal,
  work: Promise<T>,
  code: ErrorCode = "evaluation_failed",
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new ServiceError(code, `The ${which} could not be run: ${message}`, { cause: error });
  }
}

/** Outputs that hold tensors of numbers; fetching some of the others ends the process. */
function comparableOutputs({ signature }: ModelSession): { names: string[]; warnings: Warning[] } {
  const names: string[] = [];
  const warnings: Warning[] = [];
  for (const output of signature.outputs) {
    if (output.isTensor && elementType.safeParse(output.type).success) {
      names.push(output.name);
    } else {
      const content = output.isTensor ? `elements of type ${output.type}` : "no tensor";
      warnings.push({
        code: "output_not_compared",
        message: `Output "${output.name}" holds ${content} and was not compared`,
      });
    }
  }
  if (names.length === 0) {
    throw new ServiceError(
      "evaluation_failed",
      "The model has no output that holds a tensor of numbers",
    );
  }
  return { names, warnings };
}

async function compareOnSamples(
  models: ModelPair,
  source: SampleSource,
  { outputs, signal, onProgress, log }: EvaluateOptions & { outputs: readonly string[] },
): Promise<OutputComparison[]> {
  const comparisons = outputs.map(emptyOutputComparison);
  let done = 0;
  for await (const sample of source.samples) {
    if (done === 0)
      log(`Comparing ${source.count} ${source.data} samples, the first: ${describeShapes(sample)}`);
    const originalOutputs = await labelRuntimeErrors(
      "original",
      signal,
      models.original.run(sample, outputs),
      source.failureCode,
    );
    const resultOutputs = await labelRuntimeErrors(
      "result",
      signal,
      models.result.run(sample, outputs),
    );
    for (const comparison of comparisons) {
      const [original, result] = [originalOutputs, resultOutputs].map((all) =>
        all.find(({ name }) => name === comparison.name),
      );
      if (original && result) addSampleOutput(comparison, original, result);
    }
    done += 1;
    onProgress(
      (done / source.count) * comparisonShare,
      `Compared sample ${done} of ${source.count}`,
    );
  }
  return comparisons;
}

function summarizeAccuracy(
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
): Warning[] {
  const warnings = comparisons
    .filter(({ reshapedSamples }) => reshapedSamples > 0)
    .map(({ name, reshapedSamples }) => ({
      code: "output_shape_differs",
      message: `Output "${name}" has another shape than the original's in ${reshapedSamples} of ${count} samples, which count as zeros`,
    }));
  if (comparisons.length > maxReportedOutputs) {
    const message = `The model has ${comparisons.length} outputs; the ${maxReportedOutputs} with the lowest SQNR are reported`;
    warnings.push({ code: "outputs_left_out", message });
  }
  return warnings;
}

function checkAccuracyFloor(accuracy: Accuracy, minCosine: number): Warning[] {
  const worst = accuracy.outputs.find(({ cosine }) => cosine === accuracy.cosine);
  if (!worst || worst.cosine >= minCosine) return [];
  const message = `Output "${worst.name}" has cosine similarity ${worst.cosine.toFixed(4)} to the original's; at least ${minCosine} is required`;
  if (accuracy.data === "caller") throw new ServiceError("accuracy_below_floor", message);
  return [{ code: "accuracy_below_floor", message: `${message} (on generated data)` }];
}

async function measureLatency(
  models: ModelPair,
  { evaluation: { runs, warmup }, signal, onProgress }: EvaluateOptions,
): Promise<NonNullable<Telemetry["latency"]>> {
  const times: Record<keyof ModelPair, number[]> = { original: [], result: [] };
  for (let run = 0; run < warmup + runs; run++) {
    const order =
      run % 2 === 0 ? (["original", "result"] as const) : (["result", "original"] as const);
    for (const which of order) {
      const milliseconds = await labelRuntimeErrors(which, signal, models[which].timeRun());
      if (run >= warmup) times[which].push(milliseconds);
    }
    const fraction = comparisonShare + ((run + 1) / (warmup + runs)) * (1 - comparisonShare);
    onProgress(fraction, `Timed run ${run + 1} of ${warmup + runs}`);
  }
  const [original, result] = [summarizeLatency(times.original), summarizeLatency(times.result)];
  return { original, result, ratio: result.p50Ms / original.p50Ms };
}

function summarizeLatency(times: readonly number[]): Latency {
  const sorted = Float64Array.from(times).sort();
  return {
    p50Ms: percentile(sorted, 0.5),
    p95Ms: percentile(sorted, 0.95),
    p99Ms: percentile(sorted, 0.99),
    runs: times.length,
  };
}
