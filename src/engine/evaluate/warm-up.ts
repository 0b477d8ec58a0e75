import { medianValue } from "./median-value.ts";
import type { TimedRun } from "./session-protocol.ts";

/** Milliseconds that a batch of runs takes at least, so that the clock's steps are far below it. */
const minBatchMs = 5;

/** Runs of a batch whose median leaves out the first one, which finds the other model's caches. */
const minBatchRuns = 3;

/** Milliseconds of a run from which on what is left in caches no longer matters. */
const longRunMs = 100;

const maxBatchRuns = 1000;

/** A batch that is faster by this share than those before it shows that warm-up goes on. */
const fallingShare = 0.02;

/** Milliseconds without a faster batch that end warm-up. */
const steadyMs = 15;

const maxWarmUpBatches = 50;

/** Runs a model some times in a row. */
type TimeRuns = (runs: number) => Promise<TimedRun[]>;

/** Runs of a batch for a model that takes `runMs` milliseconds. */
function batchRuns(runMs: number): number {
  if (runMs >= longRunMs) return 1;
  return Math.min(maxBatchRuns, Math.max(minBatchRuns, Math.ceil(minBatchMs / runMs)));
}

/**
 * Runs a model until the medians of batches fall no more.
 * @returns how many runs a timed batch has
 */
export async function warmUp(timeRuns: TimeRuns): Promise<number> {
  let runs = 1;
  let fastest = Infinity;
  let steady = 0;
  for (let batch = 0; batch < maxWarmUpBatches && steady < steadyMs; batch++) {
    const times = (await timeRuns(runs)).map(({ milliseconds }) => milliseconds);
    const middle = medianValue(times);
    const isFalling = middle < fastest * (1 - fallingShare);
    steady = isFalling ? 0 : steady + times.reduce((sum, time) => sum + time, 0);
    if (isFalling) fastest = middle;
    runs = batchRuns(fastest);
  }
  return runs;
}
