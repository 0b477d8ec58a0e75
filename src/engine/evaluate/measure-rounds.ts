import type { RatioInterval } from "./estimate-ratio.ts";
import { drawOrders } from "./draw-orders.ts";
import { maxRounds, minRounds } from "./latency-looks.ts";
import { measureRound, type RoundTimes } from "./latency-round.ts";
import { RuntimeProcess } from "./runtime-process.ts";
import type { Sample } from "./tensor-data.ts";

export interface RoundsOptions {
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

/** Milliseconds of runs that a round has for each input shape. */
const timedMsLimits = { least: 150, most: 600 };

/** Measures rounds until there are as many as allowed or the next would end after the budget. */
export async function* measureRounds(
  options: RoundsOptions,
): AsyncGenerator<Round, void, undefined> {
  const { originalPath, resultPath, samples, executionProvider, threads, signal } = options;
  const started = performance.now();
  await using process = new RuntimeProcess(signal);
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
  if (isDecided !== undefined) return timedMsLimits.least;
  const share = (budgetSeconds * 1000) / maxRounds / samples.length;
  return Math.min(timedMsLimits.most, Math.max(timedMsLimits.least, share));
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
