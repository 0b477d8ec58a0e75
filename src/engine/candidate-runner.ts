import { availableParallelism } from "node:os";
import { ServiceError } from "../contract/errors.ts";
import type { Evaluation } from "../contract/jobs/recipe.ts";
import { planModelRuns } from "./accuracy/model-run.ts";
import { readAvailableMemoryBytes } from "./accuracy/available-memory.ts";
import type { CandidateRatio, CandidateRunner, TimingOptions } from "./candidate.ts";
import {
  addSampleOutput,
  comparableOutputs,
  emptyOutputComparison,
  summarizeOutputAccuracy,
} from "./evaluate/output-comparison.ts";
import { compareLatency } from "./evaluate/compare-latency.ts";
import { describeDevice } from "./evaluate/describe-device.ts";
import { findDistinctSamples, openSamples } from "./evaluate/open-samples.ts";
import { labelRuntimeErrors } from "./evaluate/label-runtime-errors.ts";
import { type ModelPair, ModelSession } from "./evaluate/model-session.ts";
import type { Sample, TensorData } from "./evaluate/tensor-data.ts";

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
  readonly samples: readonly Sample[];
  readonly outputs: readonly string[];
  readonly tensors: readonly (readonly TensorData[])[];
}

/** Input shapes that candidates are timed on. */
const maxShapes = 2;
/** Samples that outputs are compared on. */
const maxCompared = 8;

/**
 * Runs candidates beside the original on this machine. Where they cannot be run or do not fit the
 * memory at hand, the figures are undefined and the job's log says why: the evaluation reports it.
 */
export function createCandidateRunner(options: RunnerOptions): CandidateRunner {
  const { signal, log } = options;
  const threads = availableParallelism();
  let opening: Promise<Reference> | undefined;
  const whereItRuns = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      log(`Candidates are not timed: ${error.message}`);
      return undefined;
    }
  };
  const settings = { ...options, threads };
  return {
    budgetSeconds: options.evaluation.latencyBudgetSeconds,
    time: (path, timing) =>
      whereItRuns(async () => {
        if (!(await canTime(path, settings))) return undefined;
        const { timed } = await (opening ??= runOriginal(settings));
        return timeCandidate(path, timed, { ...settings, ...timing });
      }),
    measureSqnrDb: (path) =>
      whereItRuns(async () =>
        compareOutputs(path, await (opening ??= runOriginal(settings)), settings),
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
  const { names: outputs } = comparableOutputs(session);
  await using source = await openSamples(session, {
    ...settings,
    modelPath: originalPath,
    outputs,
  });
  const timed = (await findDistinctSamples(source)).slice(0, maxShapes);
  const samples: Sample[] = [];
  for await (const sample of source.samples) {
    if (samples.push(sample) === maxCompared) break;
  }
  const labels = { which: "original", signal: settings.signal } as const;
  return { timed, samples, outputs, tensors: await runOn(session, { samples, outputs }, labels) };
}

async function openCandidateSession(
  which: keyof ModelPair,
  path: string,
  { executionProvider, threads, signal }: Settings,
): Promise<ModelSession> {
  const opening = ModelSession.open(path, { executionProvider, threads, signal });
  return labelRuntimeErrors(which, opening, signal);
}

async function runOn(
  session: ModelSession,
  { samples, outputs }: Pick<Reference, "samples" | "outputs">,
  { which, signal }: { which: keyof ModelPair; signal: AbortSignal },
): Promise<TensorData[][]> {
  const tensors: TensorData[][] = [];
  for (const sample of samples) {
    const running = session.run(sample, outputs);
    tensors.push(await labelRuntimeErrors(which, running, signal));
  }
  return tensors;
}

async function timeCandidate(
  resultPath: string,
  samples: readonly Sample[],
  { share, evaluation, ...settings }: Settings & TimingOptions,
): Promise<CandidateRatio> {
  const budgetSeconds = evaluation.latencyBudgetSeconds * share;
  const started = performance.now();
  const { latency } = await compareLatency({
    ...settings,
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
  { samples, outputs, tensors }: Reference,
  settings: Settings,
): Promise<number> {
  await using session = await openCandidateSession("result", path, settings);
  const comparisons = outputs.map(emptyOutputComparison);
  const labels = { which: "result", signal: settings.signal } as const;
  const results = await runOn(session, { samples, outputs }, labels);
  for (const [index, ofSample] of results.entries()) {
    for (const comparison of comparisons) {
      const isSame = ({ name }: TensorData) => name === comparison.name;
      const [original, result] = [tensors[index]?.find(isSame), ofSample.find(isSame)];
      if (original && result) addSampleOutput(comparison, original, result);
    }
  }
  return Math.min(...comparisons.map((each) => summarizeOutputAccuracy(each).sqnrDb));
}
