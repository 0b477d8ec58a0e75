import { availableParallelism } from "node:os";
import { ServiceError } from "../contract/errors.ts";
import type { Evaluation, Recipe } from "../contract/jobs/recipe.ts";
import { planModelRuns } from "./accuracy/model-run.ts";
import { readAvailableMemoryBytes } from "./accuracy/available-memory.ts";
import { openTextSamples } from "./accuracy/open-text-samples.ts";
import type {
  CandidateRatio,
  CandidateRunner,
  MeasureOptions,
  TimingOptions,
} from "./candidate.ts";
import { findSoftmaxOutputs } from "./evaluate/bounded-outputs.ts";
import { invertSoftmax } from "./evaluate/invert-softmax.ts";
import {
  addSampleOutput,
  comparableOutputs,
  emptyOutputComparison,
  summarizeOutputAccuracy,
} from "./evaluate/output-comparison.ts";
import { compareLatency } from "./latency/compare-latency.ts";
import { describeDevice } from "./evaluate/describe-device.ts";
import { findDistinctSamples, openSamples } from "./samples/open-samples.ts";
import { labelRuntimeErrors } from "./runtime/label-runtime-errors.ts";
import { logitsName } from "./runtime/logit-rows.ts";
import { type ModelPair, ModelSession } from "./runtime/model-session.ts";
import type { Sample, TensorData } from "./runtime/tensor-data.ts";
import { memoize } from "./quantize/memoize.ts";

interface RunnerOptions {
  readonly originalPath: string;
  readonly evaluation: Pick<Evaluation, "samples" | "latencyBudgetSeconds">;
  readonly executionProvider: "cpu" | "cuda";
  /** Instruction sets of the target; undefined where it is this machine. */
  readonly instructionSets: readonly string[] | undefined;
  readonly dataPath?: string | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

/** What the original computes on the samples that candidates are run on. */
interface Reference {
  /** One for each input shape. */
  readonly timed: readonly Sample[];
  readonly outputs: readonly string[];
  /** Finds the outputs that are a softmax. */
  readonly findProbabilities: () => Promise<ReadonlySet<string>>;
  /** What the softmax of an output below was taken of. */
  readonly invert: (tensor: TensorData) => TensorData;
  readonly compared: readonly { sample: Sample; tensors: readonly TensorData[] }[];
}

/** Input shapes that candidates are timed on. */
const maxShapes = 2;
/** Most samples compared, and the size of the original's outputs after which none is added. */
const maxCompared = 16;
const maxComparedBytes = 256 * 1024 ** 2;

/**
 * Whether candidates are run for a recipe: to be timed, and where it has a calibration also, or
 * only, to be compared by their accuracy.
 */
export function runsCandidates({ calibration, evaluation }: Recipe): boolean {
  const isCompared = calibration !== undefined || evaluation.latencyBudgetSeconds > 0;
  return evaluation.level === "outputs" && isCompared;
}

/**
 * Runs candidates beside the original on this machine. Where they cannot be run or do not fit the
 * memory at hand, the figures are undefined and the job's log says why: the evaluation reports it.
 */
export function createCandidateRunner(options: RunnerOptions): CandidateRunner {
  const { signal, log } = options;
  const threads = availableParallelism();
  let opening: Promise<Reference> | undefined;
  const orUndefined = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      log(`Candidates cannot be run: ${error.message}`);
      return undefined;
    }
  };
  const settings = { ...options, threads };
  return {
    budgetSeconds: options.evaluation.latencyBudgetSeconds,
    time: (path, timing) =>
      orUndefined(async () => {
        if (options.evaluation.latencyBudgetSeconds === 0) return undefined;
        if (!(await canTime(path, settings))) return undefined;
        const { timed } = await (opening ??= runOriginal(settings));
        return timeCandidate(path, timed, { ...settings, ...timing });
      }),
    measureSqnrDb: (path, measuring) =>
      orUndefined(async () =>
        compareOutputs(path, await (opening ??= runOriginal(settings)), {
          ...settings,
          beforeSoftmax: measuring?.beforeSoftmax ?? false,
        }),
      ),
  };
}

type Settings = RunnerOptions & { readonly threads: number };

async function canTime(resultPath: string, settings: Settings): Promise<boolean> {
  const { executionProvider, instructionSets = [], threads, originalPath, log } = settings;
  const device = await describeDevice(executionProvider, threads);
  const missing = instructionSets.filter((name) => !device.instructionSets?.includes(name));
  if (missing.length > 0) {
    log(`Candidates are not timed: this machine lacks ${missing.join(", ")} of the target`);
    return false;
  }
  const availableBytes = await readAvailableMemoryBytes();
  const { timingObstacle } = await planModelRuns(originalPath, resultPath, availableBytes);
  if (timingObstacle !== undefined) log(`Candidates are not timed: ${timingObstacle}`);
  return timingObstacle === undefined;
}

async function runOriginal(settings: Settings): Promise<Reference> {
  const { originalPath } = settings;
  await using session = await openCandidateSession("original", originalPath, settings);
  const { source: text } = await openTextSamples(session, settings);
  const outputs = text === undefined ? comparableOutputs(session).names : [logitsName];
  const opening = text ?? openSamples(session, { ...settings, modelPath: originalPath, outputs });
  await using source = await opening;
  const timed = (await findDistinctSamples(source, settings.executionProvider)).slice(0, maxShapes);
  const compared: { sample: Sample; tensors: readonly TensorData[] }[] = [];
  let bytes = 0;
  for await (const sample of source.samples) {
    const running = session.run(sample, outputs);
    const tensors = await labelRuntimeErrors("original", running, settings.signal);
    bytes += tensors.reduce((sum, tensor) => sum + tensor.bytes.length, 0);
    if (compared.push({ sample, tensors }) === maxCompared || bytes > maxComparedBytes) break;
  }
  let probabilities: Promise<ReadonlySet<string>> | undefined;
  const findProbabilities = async () => (probabilities ??= findSoftmaxOutputs(originalPath));
  return { timed, outputs, findProbabilities, invert: memoize(invertSoftmax), compared };
}

async function openCandidateSession(
  which: keyof ModelPair,
  path: string,
  { executionProvider, threads, signal }: Settings,
): Promise<ModelSession> {
  const opening = ModelSession.open(path, { executionProvider, threads, signal });
  return labelRuntimeErrors(which, opening, signal);
}

async function timeCandidate(
  resultPath: string,
  samples: readonly Sample[],
  { share, evaluation, reference, ...settings }: Settings & TimingOptions,
): Promise<CandidateRatio> {
  const budgetSeconds = evaluation.latencyBudgetSeconds * share;
  const started = performance.now();
  const { latency } = await compareLatency({
    ...settings,
    originalPath: reference ?? settings.originalPath,
    resultPath,
    samples,
    budgetSeconds,
  });
  const { ratio, ratioLow: low = 0, ratioHigh: high = Infinity, sessions = 1 } = latency;
  const secondsPerRound = (performance.now() - started) / 1000 / sessions;
  return { ratio, low, high, secondsPerRound };
}

/** SQNR of the worst output, dB. */
async function compareOutputs(
  path: string,
  { compared, outputs, findProbabilities, invert }: Reference,
  { beforeSoftmax, ...settings }: Settings & MeasureOptions,
): Promise<number> {
  const probabilities = beforeSoftmax ? await findProbabilities() : undefined;
  await using session = await openCandidateSession("result", path, settings);
  const comparisons = outputs.map(emptyOutputComparison);
  for (const { sample, tensors } of compared) {
    const running = session.run(sample, outputs);
    const results = await labelRuntimeErrors("result", running, settings.signal);
    for (const comparison of comparisons) {
      const isSame = ({ name }: TensorData) => name === comparison.name;
      const [original, result] = [tensors.find(isSame), results.find(isSame)];
      if (original === undefined || result === undefined) continue;
      const isInverted = probabilities?.has(comparison.name) ?? false;
      const [a, b] = isInverted ? [invert(original), invertSoftmax(result)] : [original, result];
      addSampleOutput(comparison, a, b);
    }
  }
  return Math.min(...comparisons.map((each) => summarizeOutputAccuracy(each).sqnrDb));
}
