import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import { createRandom } from "../samples/generate-sample.ts";
import {
  areNarrow,
  areNoisy,
  estimateForDecision,
  estimateShapes,
  isInterimAnalysis,
  isUndecided,
  maxRounds,
  minDecisionRounds,
  minRounds,
} from "./interim-analysis.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import { measureRound, type Order, type RoundTimes } from "./latency-round.ts";
import type { RatioInterval } from "./ratio-estimate.ts";
import { RuntimeProcess } from "../runtime/runtime-process.ts";
import { findSlowest, summarizeLatency } from "./summarize-latency.ts";
import type { Sample } from "../runtime/tensor-data.ts";
import { formatRatio, type Latency } from "../../contract/jobs/latency.ts";

export interface LatencyComparison {
  readonly latency: Latency;
  /** `latency_noisy` where an interval stayed wide. */
  readonly warnings: readonly EvaluationWarning[];
}

/**
 * Times both models in one process, in rounds that open both again: a session of a model is 1 to
 * 3 % faster or slower than another for as long as it lives, so the interval of the ratio is over
 * sessions and not over runs. Ends when the interval is narrow or the budget is over.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run
 * @throws the signal's reason if it was aborted; no process is left then
 */
export async function compareLatency(options: RoundsOptions): Promise<LatencyComparison> {
  const { samples, isDecided } = options;
  const rounds: RoundTimes[][] = [];
  for await (const { times, isLast } of measureRounds(options)) {
    rounds.push(times);
    const mayDecide = isDecided !== undefined && rounds.length >= minDecisionRounds;
    if (!isLast && !mayDecide && !isInterimAnalysis(rounds.length)) continue;
    const estimate = isDecided === undefined ? estimateShapes : estimateForDecision;
    const shapes = measureShapes(samples, rounds, estimate);
    const intervals = shapes.map(({ interval }) => interval);
    const slowest = findSlowest(shapes).interval;
    const isKnown = areNarrow(intervals) && !isUndecided(slowest, options.limit);
    if (!isLast && !isKnown && !isDecided?.(slowest)) continue;
    const latency = summarizeLatency(shapes);
    return { latency, warnings: areNoisy(intervals) ? [noisyWarning(latency)] : [] };
  }
  throw new TypeError("The last round was not marked");
}

function measureShapes(
  samples: readonly Sample[],
  rounds: readonly RoundTimes[][],
  estimate: typeof estimateShapes,
) {
  const timesOfShapes = samples.map((_, shape) => rounds.flatMap((times) => times[shape] ?? []));
  const intervals = estimate(timesOfShapes.map((times) => times.map(({ logRatio }) => logRatio)));
  return samples.flatMap((sample, shape) => {
    const [interval, times] = [intervals[shape], timesOfShapes[shape]];
    return interval && times ? [{ sample, rounds: times, interval }] : [];
  });
}

function noisyWarning({ sessions, ...measured }: Latency): EvaluationWarning {
  const message =
    `The latency's ratio, ${formatRatio(measured)}, is not known well after ` +
    `${sessions} sessions of each model`;
  return { code: "latency_noisy", message };
}

interface RoundsOptions {
  readonly originalPath: string;
  readonly resultPath: string;
  /** One sample for each distinct input shape, at least one. */
  readonly samples: readonly Sample[];
  readonly executionProvider: "cpu" | "cuda";
  /** Threads of each operator. */
  readonly threads: number;
  /**
   * Ends the measurement before the interval is narrow, for callers that only need a decision. The
   * interval is that of one look then.
   */
  readonly isDecided?: (interval: RatioInterval) => boolean;
  /** A ratio: the measurement is to find the interval on one side of it. */
  readonly limit?: number | undefined;
  /** No session is begun that would end later; two are measured whatever it is. */
  readonly budgetSeconds: number;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
}

interface Round {
  readonly times: RoundTimes[];
  /** Whether no further round is allowed. */
  readonly isLast: boolean;
}

/** Milliseconds of runs that a round has for each input shape, but for a budget of less. */
const timedMsLimits = { least: 150, most: 600 };

/** Measures rounds until there are as many as allowed or the next would end after the budget. */
async function* measureRounds(options: RoundsOptions): AsyncGenerator<Round, void, undefined> {
  const { originalPath, resultPath, samples, executionProvider, threads, signal } = options;
  await using process = new RuntimeProcess(signal);
  // The start of CUDA takes about a second, once.
  if (executionProvider === "cuda") {
    await labelRuntimeErrors("original", process.request({ do: "start-gpu" }, "started"), signal);
  }
  const started = performance.now();
  const paths = { original: originalPath, result: resultPath };
  const feeds = await sendSamples(process, samples);
  const timedMs = chooseTimedMs(options);
  const fixed = { process, paths, feeds, executionProvider, threads, timedMs, signal };
  let rounds = 0;
  let longestMs = 0;
  for (const order of drawOrders()) {
    const roundStarted = performance.now();
    const times = await measureRound({ ...fixed, order });
    rounds += 1;
    const now = performance.now();
    longestMs = Math.max(longestMs, now - roundStarted);
    const nextShare = (now - started + longestMs) / (options.budgetSeconds * 1000);
    const isLast = rounds >= minRounds && (rounds === maxRounds || nextShare > 1);
    const done = Math.max(rounds / maxRounds, Math.min(nextShare, 1));
    options.onProgress(done, `Timed both models in ${rounds} sessions`);
    yield { times, isLast };
  }
}

/**
 * A share of the budget, since the quartile of many runs is known better than that of few; for a
 * decision the least.
 */
function chooseTimedMs({ budgetSeconds, samples, isDecided }: RoundsOptions): number {
  const shapeMs = (budgetSeconds * 1000) / samples.length;
  const least = Math.min(timedMsLimits.least, shapeMs / minRounds);
  if (isDecided !== undefined) return least;
  return Math.min(timedMsLimits.most, Math.max(least, shapeMs / maxRounds));
}

/** Sends the samples to the process. @returns their names there */
async function sendSamples(process: RuntimeProcess, samples: readonly Sample[]): Promise<string[]> {
  const names: string[] = [];
  for (const [index, sample] of samples.entries()) {
    const feed = String(index);
    names.push(feed);
    await process.request({ do: "feed", feed, inputs: [...sample] }, "fed");
  }
  return names;
}

/**
 * Which model each round opens first: drawn by lot, and the other one in the round after it, since
 * the place in the process's memory makes a difference.
 */
function* drawOrders(): Generator<Order, never, undefined> {
  const random = createRandom(0);
  for (;;) {
    const order: Order = random() < 0.5 ? ["original", "result"] : ["result", "original"];
    yield order;
    yield [order[1], order[0]];
  }
}
