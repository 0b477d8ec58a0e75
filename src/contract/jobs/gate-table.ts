import { z } from "zod";
import { latencyObstacle, type MeasuredFigures, sqnrObstacle } from "./comparability.ts";
import { explainWideInterval, type LatencyRatio } from "./latency.ts";

export interface GateKind {
  /** `max`: the figure may not rise above the limit. `min`: it may not fall below it. */
  readonly bound: "max" | "min";
  readonly description: string;
  readonly figure: (figures: MeasuredFigures) => number | undefined;
  /** What is compared with the limit in place of the figure, where it was measured. */
  readonly interval?: (figures: MeasuredFigures) => GateInterval | undefined;
  /** Set where the limit is on how much worse than the baseline's figure the job's is. */
  readonly change?: GateChange;
}

/** A figure and the interval that it is known to lie in. */
export interface GateInterval {
  readonly actual: number;
  readonly low: number;
  readonly high: number;
  /** Why the interval says nothing, where it does not. */
  readonly weakness?: string;
}

export interface GateChange {
  readonly worsening: (now: number, before: number) => number;
  /** Why the two cannot be compared, though both have the figure. */
  readonly obstacle?: (now: MeasuredFigures, before: MeasuredFigures) => string | undefined;
  /** Share by which figures of separate runs differ though nothing changed; 0 where absent. */
  readonly noise?: number;
}

/**
 * Medians of separate runs on the same hardware differ by it: a session of a model is 1 to 3 %
 * faster or slower than another for as long as it lives, and other processes come on top.
 */
export const separateRunsNoise = 0.05;

const worstWeight = "at the evaluation level `weights` that of the worst weight";

/** Every gate that a job can have, with the figure it limits. */
export const gateTable = {
  maxSizeRatio: {
    bound: "max",
    description: "Largest size of the result relative to the original.",
    figure: ({ size }) => size?.ratio,
  },
  minSqnrDb: {
    bound: "min",
    description: `Least SQNR of any output, dB; ${worstWeight}.`,
    figure: ({ accuracy }) => accuracy?.sqnrDb,
  },
  minCosine: {
    bound: "min",
    description: `Least cosine similarity of any output; ${worstWeight}.`,
    figure: ({ accuracy }) => accuracy?.cosine,
  },
  minTop1: {
    bound: "min",
    description:
      "Least share of samples, of any output, whose largest element is the same as the original's.",
    figure: leastTop1,
  },
  maxLatencyRatio: {
    bound: "max",
    description:
      "Largest latency of the result relative to the original's in the same run. Fails where the " +
      "whole confidence interval lies above it, and warns where the interval contains it.",
    figure: ({ latency }) => latency?.ratio,
    interval: ({ latency }) => ratioInterval(latency),
  },
  maxSizeRegression: {
    bound: "max",
    description:
      "Largest growth of the result relative to the baseline's; 0.05 allows 5 % more bytes.",
    figure: ({ size }) => size?.resultBytes,
    change: { worsening: growth },
  },
  maxSqnrDropDb: {
    bound: "max",
    description: "Largest loss of SQNR against the baseline, dB.",
    figure: ({ accuracy }) => accuracy?.sqnrDb,
    change: { worsening: (now, before) => before - now, obstacle: sqnrObstacle },
  },
  maxLatencyRegression: {
    bound: "max",
    description:
      "Largest growth of the result's latency relative to the baseline's; 0.05 allows 5 % more. " +
      "Where both were timed in one run, the confidence interval decides as for " +
      "`maxLatencyRatio`. Else the medians of both runs are compared, on the same hardware only, " +
      `and growth that is beyond the limit by less than ${100 * separateRunsNoise} % warns.`,
    figure: ({ latency }) => latency?.result.p50Ms,
    interval: ({ latency }) => growthInterval(latency?.baseline),
    change: { worsening: growth, obstacle: latencyObstacle, noise: separateRunsNoise },
  },
} as const satisfies Record<string, GateKind>;

export type GateName = keyof typeof gateTable;
export const gateName = z.enum(Object.keys(gateTable) as [GateName, ...GateName[]]);

function growth(now: number, before: number): number {
  return (now - before) / before;
}

function ratioInterval(latency: LatencyRatio | undefined): GateInterval | undefined {
  if (latency === undefined) return undefined;
  const { ratio, ratioLow = ratio, ratioHigh = ratio } = latency;
  const interval = { actual: ratio, low: ratioLow, high: ratioHigh };
  const reason = explainWideInterval(latency);
  return reason === undefined ? interval : { ...interval, weakness: `The latency was ${reason}` };
}

function growthInterval(latency: LatencyRatio | undefined): GateInterval | undefined {
  const interval = ratioInterval(latency);
  if (interval === undefined) return undefined;
  const { actual, low, high } = interval;
  return { ...interval, actual: growth(actual, 1), low: growth(low, 1), high: growth(high, 1) };
}

function leastTop1({ accuracy }: MeasuredFigures): number | undefined {
  const known = accuracy?.outputs?.flatMap(({ top1Agreement }) => top1Agreement ?? []) ?? [];
  return known.length === 0 ? undefined : Math.min(...known);
}
