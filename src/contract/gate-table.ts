import { z } from "zod";
import { latencyObstacle, type MeasuredFigures, sqnrObstacle } from "./comparability.ts";

export interface GateKind {
  /** `max`: the figure may not rise above the limit. `min`: it may not fall below it. */
  readonly bound: "max" | "min";
  readonly description: string;
  readonly figure: (figures: MeasuredFigures) => number | undefined;
  /** Set where the limit is on how much worse than the baseline's figure the job's is. */
  readonly change?: GateChange;
}

export interface GateChange {
  readonly worsening: (now: number, before: number) => number;
  /** Why the two cannot be compared, though both have the figure. */
  readonly obstacle?: (now: MeasuredFigures, before: MeasuredFigures) => string | undefined;
  /** Why the difference means nothing, whatever its share. */
  readonly excuse?: (difference: number, settings: NoiseSettings) => string | undefined;
}

interface NoiseSettings {
  readonly latencyNoiseMs?: number | undefined;
}

/** Milliseconds within which two median latencies count as equal where a request sets no limit. */
export const defaultLatencyNoiseMs = 0.1;

/** Every gate that a job can have, with the figure it limits. */
export const gateTable = {
  maxSizeRatio: {
    bound: "max",
    description: "Largest size of the result relative to the original.",
    figure: ({ size }) => size?.ratio,
  },
  minSqnrDb: {
    bound: "min",
    description: "Least SQNR of any output, dB.",
    figure: ({ accuracy }) => accuracy?.sqnrDb,
  },
  minCosine: {
    bound: "min",
    description: "Least cosine similarity of any output.",
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
    description: "Largest median latency of the result relative to the original's in the same run.",
    figure: ({ latency }) => latency?.ratio,
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
      "Largest growth of the result's median latency relative to the baseline's " +
      "on the same hardware; 0.05 allows 5 % more.",
    figure: ({ latency }) => latency?.result.p50Ms,
    change: { worsening: growth, obstacle: latencyObstacle, excuse: latencyExcuse },
  },
} as const satisfies Record<string, GateKind>;

export type GateName = keyof typeof gateTable;
export const gateName = z.enum(Object.keys(gateTable) as [GateName, ...GateName[]]);

function growth(now: number, before: number): number {
  return (now - before) / before;
}

function latencyExcuse(
  differenceMs: number,
  { latencyNoiseMs = defaultLatencyNoiseMs }: NoiseSettings,
): string | undefined {
  return differenceMs <= latencyNoiseMs
    ? `A difference within ${latencyNoiseMs} ms is taken as noise`
    : undefined;
}

function leastTop1({ accuracy }: MeasuredFigures): number | undefined {
  const known = accuracy?.outputs?.flatMap(({ top1Agreement }) => top1Agreement ?? []) ?? [];
  return known.length === 0 ? undefined : Math.min(...known);
}
