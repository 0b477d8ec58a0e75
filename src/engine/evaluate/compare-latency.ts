import { formatRatio } from "../../contract/format-ratio.ts";
import type { Latency } from "../../contract/telemetry.ts";
import type { RatioInterval } from "./estimate-ratio.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import {
  areNarrow,
  areNoisy,
  estimateShapes,
  isLook,
  maxRounds,
  minRounds,
} from "./latency-looks.ts";
import { measureRound, type Order, type RoundTimes } from "./latency-round.ts";
import { createRandom } from "./random.ts";
import { RuntimeProcess } from "./runtime-process.ts";
import { findSlowest, summarizeLatency } from "./summarize-latency.ts";
import type { Sample } from "./tensor-data.ts";

interface LatencyOptions {
  readonly originalPath: string;
  readonly resultPath: string;
  /** One sample for each distinct input shape, at least one. */
  readonly samples: readonly Sample[];
  readonly executionProvider: "cpu" | "cuda";
  /** Threads of each operator. */
  readonly threads: number;
  /** No session is begun that would end later; two are measured whatever it is. */
  readonly budgetSeconds: number;
  /** Ends the measurement before the interval is narrow, for callers that only need a decision. */
  readonly isDecided?: (interval: RatioInterval) => boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
}

export interface LatencyComparison {
  readonly latency: Latency;
  /** `latency_noisy` where an interval stayed wide. */
  readonly warnings: readonly EvaluationWarning[];
}

/**
 * Times both models in one process, in rounds that open both anew: a session of a model is 1 to 3 %
 * faster or slower than another for as long as it lives, so the interval of the ratio is over
 * sessions and not over runs. Ends when the interval is narrow or the budget is over.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run
 * @throws the signal's reason if it was aborted; no process is left then
 */
export async function compareLatency(options: LatencyOptions): Promise<LatencyComparison> {
  const { samples, isDecided } = options;
  const rounds: RoundTimes[][] = [];
  for await (const { times, isLast } of measureRounds(options)) {
    rounds.push(times);
    if (!isLast && !isLook(rounds.length)) continue;
    const shapes = measureShapes(samples, rounds);
    const intervals = shapes.map(({ interval }) => interval);
    if (!isLast && !areNarrow(intervals) && !isDecided?.(findSlowest(shapes).interval)) continue;
    const latency = summarizeLatency(shapes);
    return { latency, warnings: areNoisy(intervals) ? [noisyWarning(latency)] : [] };
  }
  throw new TypeError("The last round was not marked");
}

interface Round {
  readonly times: RoundTimes[];
  /** Whether no further round is allowed. */
  readonly isLast: boolean;
}

/** Measures rounds until there are as many as allowed or the next would end after the budget. */
async function* measureRounds(options: LatencyOptions): AsyncGenerator<Round, void, undefined> {
  const { originalPath, resultPath, samples, executionProvider, threads, signal } = options;
  const started = performance.now();
  await using process = new RuntimeProcess(signal);
  const paths = { original: originalPath, result: resultPath };
  const feeds = await sendSamples(process, samples);
  const fixed = { process, paths, feeds, executionProvider, threads, signal };
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

/** Sends the samples to the process. @returns their names there */
async function sendSamples(process: RuntimeProcess, samples: readonly Sample[]): Promise<string[]> {
  const names = samples.map((_, index) => String(index));
  for (const [index, sample] of samples.entries()) {
    const feed = names[index] ?? "";
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

function measureShapes(samples: readonly Sample[], rounds: readonly RoundTimes[][]) {
  const timesOfShapes = samples.map((_, shape) => rounds.flatMap((times) => times[shape] ?? []));
  const intervals = estimateShapes(
    timesOfShapes.map((times) => times.map(({ logRatio }) => logRatio)),
  );
  return samples.flatMap((sample, shape) => {
    const [interval, times] = [intervals[shape], timesOfShapes[shape]];
    return interval && times ? [{ sample, rounds: times, interval }] : [];
  });
}

function noisyWarning(latency: Latency): EvaluationWarning {
  const message =
    `The latency's ratio, ${formatRatio(latency)}, is not known well after ` +
    `${latency.sessions} sessions of each model`;
  return { code: "latency_noisy", message };
}
