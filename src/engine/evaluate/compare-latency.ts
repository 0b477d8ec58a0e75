import { formatRatio, type Latency } from "../../contract/jobs/latency.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import {
  areNarrow,
  areNoisy,
  estimateForDecision,
  estimateShapes,
  isLook,
  minDecisionRounds,
} from "./latency-looks.ts";
import type { RoundTimes } from "./latency-round.ts";
import { measureRounds, type RoundsOptions } from "./measure-rounds.ts";
import { findSlowest, summarizeLatency } from "./summarize-latency.ts";
import type { Sample } from "./tensor-data.ts";

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
export async function compareLatency(options: RoundsOptions): Promise<LatencyComparison> {
  const { samples, isDecided } = options;
  const rounds: RoundTimes[][] = [];
  for await (const { times, isLast } of measureRounds(options)) {
    rounds.push(times);
    const mayDecide = isDecided !== undefined && rounds.length >= minDecisionRounds;
    if (!isLast && !mayDecide && !isLook(rounds.length)) continue;
    const estimate = isDecided === undefined ? estimateShapes : estimateForDecision;
    const shapes = measureShapes(samples, rounds, estimate);
    const intervals = shapes.map(({ interval }) => interval);
    if (!isLast && !areNarrow(intervals) && !isDecided?.(findSlowest(shapes).interval)) continue;
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
