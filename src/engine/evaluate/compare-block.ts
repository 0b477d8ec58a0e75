import { medianValue } from "./median-value.ts";
import type { ModelPair } from "./model-pair.ts";
import type { TimedRun } from "./session-protocol.ts";

/** The runs of a block, in which the models took turns. */
export type BlockRuns = Readonly<Record<keyof ModelPair, TimedRun[]>>;

/** Undisturbed runs of each model from which on the disturbed ones are left out. */
const minUndisturbedRuns = 3;

interface ComparedBlock extends Readonly<Record<keyof ModelPair, readonly number[]>> {
  /** Logarithm of the result's median time relative to the original's. */
  readonly logRatio: number;
  /** Milliseconds of all runs. */
  readonly timedMs: number;
}

/**
 * The ratio of the models' median times, and the milliseconds of the runs that it is from.
 * Disturbed runs of either model are left out only where both have enough others: a model whose
 * runs are long has fewer of them, and would seem slower beside one that lost its disturbed runs.
 */
export function compareBlock(runs: BlockRuns): ComparedBlock {
  const undisturbed = {
    original: runs.original.filter(({ isDisturbed }) => !isDisturbed),
    result: runs.result.filter(({ isDisturbed }) => !isDisturbed),
  };
  const isEnough = Object.values(undisturbed).every(({ length }) => length >= minUndisturbedRuns);
  const used = isEnough ? undisturbed : runs;
  const [original, result] = [readTimes(used.original), readTimes(used.result)];
  const all = [...runs.original, ...runs.result];
  return {
    original,
    result,
    logRatio: Math.log(medianValue(result) / medianValue(original)),
    timedMs: all.reduce((sum, { milliseconds }) => sum + milliseconds, 0),
  };
}

function readTimes(runs: readonly TimedRun[]): number[] {
  return runs.map(({ milliseconds }) => milliseconds);
}
