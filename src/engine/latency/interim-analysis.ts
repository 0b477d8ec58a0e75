import { estimateRatio, relativeHalfWidth, type RatioInterval } from "./ratio-estimate.ts";

/** Rounds after which the intervals are looked at; the last look ends the measurement. */
const looks: readonly number[] = [4, 8, 12, 20, 32];

export const maxRounds = Math.max(...looks);

/** Rounds that are measured whatever the budget: one alone has no interval. */
export const minRounds = 2;

/** The probability that an interval misses its ratio, over all looks and input shapes. */
const errorRate = 0.05;

/**
 * Half width, relative to the ratio, at which the measurement ends. Sessions of one file differ by
 * 1 to 3 % for as long as they live, so half of it would take four times as many.
 */
const narrowHalfWidth = 0.0125;

/** Half width of an interval that telemetry warns of. */
const noisyHalfWidth = 0.015;

/** Rounds that a decision needs at least: the interval of fewer is wide whatever they measured. */
export const minDecisionRounds = 4;

export function isInterimAnalysis(rounds: number): boolean {
  return looks.includes(rounds);
}

/**
 * The intervals of the ratios, one for each input shape, by the logarithms of each round. Ending at
 * the first look at narrow intervals prefers those that are narrow by chance; so the error rate is
 * shared out to all looks that can happen, and the intervals of the last one have it at most.
 */
export function estimateShapes(logRatios: readonly (readonly number[])[]): RatioInterval[] {
  const rate = errorRate / looks.length / logRatios.length;
  return logRatios.map((ofRounds) => estimateRatio(ofRounds, rate));
}

/**
 * The same for a decision, whose outcome is measured again: looking after every round, it is wrong
 * a little more often than the error rate, and needs half the rounds.
 */
export function estimateForDecision(logRatios: readonly (readonly number[])[]): RatioInterval[] {
  return logRatios.map((ofRounds) => estimateRatio(ofRounds, errorRate));
}

export function areNarrow(intervals: readonly RatioInterval[]): boolean {
  return intervals.every((interval) => relativeHalfWidth(interval) <= narrowHalfWidth);
}

export function areNoisy(intervals: readonly RatioInterval[]): boolean {
  return intervals.some((interval) => relativeHalfWidth(interval) > noisyHalfWidth);
}

/** Whether the limit of a gate lies within the interval. */
export function isUndecided({ low, high }: RatioInterval, limit: number | undefined): boolean {
  return limit !== undefined && low <= limit && limit < high;
}
