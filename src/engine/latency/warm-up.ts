import { percentile } from "./percentile.ts";

/** Milliseconds that a batch of runs takes at least, so that the clock's steps are far below it. */
const minBatchMs = 5;

/** Runs of a timed batch at least: the first one finds what the other model left in the caches. */
const minTimedRuns = 3;

/** Milliseconds after which a run is too long for what is left in caches to matter. */
const longRunMs = 100;

const maxBatchRuns = 1000;

/** A batch that is faster by this share than those before it shows that warm-up goes on. */
const fallingShare = 0.02;

/** Milliseconds without a faster batch that end warm-up. */
const steadyMs = 15;

const maxWarmUpBatches = 50;

/** Runs a model some times in a row. */
type TimeRuns = (runs: number) => Promise<number[]>;

/** Runs that take long enough for the clock, for a model that takes `runMs` milliseconds. */
function batchRuns(runMs: number): number {
  return Math.min(maxBatchRuns, Math.ceil(minBatchMs / runMs));
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
    const times = await timeRuns(runs);
    const middle = percentile(Float64Array.from(times).sort(), 0.5);
    const isFalling = middle < fastest * (1 - fallingShare);
    steady = isFalling ? 0 : steady + times.reduce((sum, time) => sum + time, 0);
    if (isFalling) fastest = middle;
    runs = batchRuns(fastest);
  }
  return fastest >= longRunMs ? 1 : Math.max(minTimedRuns, runs);
}
