import { z } from "zod";
import { latencyObstacle, type MeasuredFigures, sqnrObstacle } from "./comparability.ts";
import { explainWideInterval, type LatencyRatio } from "./latency.ts";
import { formatPercent, formatQuantity, formatTimes } from "../text/format-figure.ts";

export interface GateKind {
  /** `max`: the figure may not rise above the limit. `min`: it may not fall below it. */
  readonly bound: "max" | "min";
  /** What it limits, for people. */
  readonly title: string;
  readonly description: string;
  /** The figure or the limit, with as many digits. */
  readonly format: (value: number, digits: number) => string;
  /** What was found, as it follows a job's name: `lost 15.7 dB against main`. */
  readonly finding: (figure: string, actual: number, against: string) => string;
  /** What to do where it fails. */
  readonly advice: string;
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
  /**
   * Whether the two are compared only by the interval, since figures of separate runs differ
   * though nothing changed.
   */
  readonly needsOneRun?: boolean;
}

const percent = (share: number, digits: number) => formatPercent(share, digits);
const decibels = (value: number, digits: number) => `${formatQuantity(value, digits)} dB`;
const nats = (value: number, digits: number) => `${formatQuantity(value, digits + 3)} nats`;
const times = (ratio: number, digits: number) => formatTimes(ratio, digits + 1);
const plain = formatQuantity;

const finer =
  "Quantize less of the model: name the weights with the largest error, which the job's page lists, " +
  "in `recipe.exclude`, or use a finer `recipe.granularity` or a scheme with more bits.";
const finerBits =
  "Keep more weights in 8 bits: name the head and the `down_proj` products in `recipe.overrides` " +
  "first, then the weights with the largest error, which the job's page lists.";
const coarser =
  "Use a scheme with fewer bits, or raise the gate's limit in the workflow. The job's log says which " +
  "weights stayed as they are, and why.";
const compared =
  "Open *what changed*. If the change was not meant, undo it. If it was, press *Accept as baseline* " +
  "above or, where this check has no such button, raise the gate's limit in the workflow.";

/** The words for a change by its direction; above 0 it is worse. */
function pick(change: number, better: string, worse: string, same: string): string {
  if (change === 0) return same;
  return change > 0 ? worse : better;
}

const worstWeight = "at the evaluation level `weights` that of the worst weight";

/** Every gate that a job can have, with the figure it limits. */
export const gateTable = {
  maxSizeRatio: {
    bound: "max",
    title: "Size against the original",
    description: "Largest size of the result relative to the original.",
    format: percent,
    finding: (figure) => `has ${figure} of the original's size`,
    advice: coarser,
    figure: ({ size }) => size?.ratio,
  },
  minSqnrDb: {
    bound: "min",
    title: "Accuracy (SQNR)",
    format: decibels,
    finding: (figure) => `has an accuracy (SQNR) of ${figure}`,
    advice: finer,
    description: `Least SQNR of any output, dB; ${worstWeight}.`,
    figure: ({ accuracy }) => accuracy?.sqnrDb,
  },
  minCosine: {
    bound: "min",
    title: "Cosine similarity",
    format: plain,
    finding: (figure) => `has a cosine similarity of ${figure}`,
    advice: finer,
    description: `Least cosine similarity of any output; ${worstWeight}.`,
    figure: ({ accuracy }) => accuracy?.cosine,
  },
  minTop1: {
    bound: "min",
    title: "Same top answer",
    format: percent,
    finding: (figure) => `gives the original's top answer in ${figure} of the cases`,
    advice: finer,
    description:
      "Least share of samples, of any output, whose largest element is the same as the " +
      "original's; for a language model the share of tokens after which both expect the same one.",
    figure: leastTop1,
  },
  maxPerplexityRatio: {
    bound: "max",
    title: "Perplexity against the original",
    format: percent,
    finding: (figure) => `has ${figure} of the original's perplexity (lower is better)`,
    advice: finerBits,
    description: "Largest perplexity of a language model's result relative to the original's.",
    figure: ({ accuracy }) => accuracy?.language?.perplexityRatio,
  },
  maxKlDivergence: {
    bound: "max",
    title: "KL divergence",
    format: nats,
    finding: (figure) => `predicts ${figure} away from the original`,
    advice: finerBits,
    description:
      "Largest mean Kullback-Leibler divergence of a language model's predictions of the next " +
      "token from the original's, nats.",
    figure: ({ accuracy }) => accuracy?.language?.klDivergence,
  },
  maxLatencyRatio: {
    bound: "max",
    title: "Latency against the original",
    format: times,
    finding: (figure) => `takes ${figure} the original's time`,
    advice:
      "Choose another `recipe.scheme`, or leave the operators that the job's log calls slower as they " +
      "are by `recipe.exclude`. Times hold for processors such as the worker's: for a target with " +
      "another one, run its jobs there.",
    description:
      "Largest latency of the result relative to the original's in the same run. Fails where the " +
      "whole confidence interval lies above it, and warns where the interval contains it.",
    figure: ({ latency }) => latency?.ratio,
    interval: ({ latency }) => ratioInterval(latency),
  },
  maxSizeRegression: {
    bound: "max",
    title: "Growth of the size",
    format: percent,
    finding: (figure, actual, against) =>
      `${pick(actual, `is ${figure} smaller than`, `is ${figure} larger than`, "is as large as")} that of ${against}`,
    advice: compared,
    description:
      "Largest growth of the result relative to the baseline's; 0.05 allows 5 % more bytes.",
    figure: ({ size }) => size?.resultBytes,
    change: { worsening: growth },
  },
  maxSqnrDropDb: {
    bound: "max",
    title: "Loss of accuracy",
    format: decibels,
    finding: (figure, actual, against) =>
      `${pick(actual, `gained ${figure}`, `lost ${figure}`, "lost no accuracy")} against ${against}`,
    advice: compared,
    description: "Largest loss of SQNR against the baseline, dB.",
    figure: ({ accuracy }) => accuracy?.sqnrDb,
    change: { worsening: (now, before) => before - now, obstacle: sqnrObstacle },
  },
  maxLatencyRegression: {
    bound: "max",
    title: "Growth of the latency",
    format: percent,
    finding: (figure, actual, against) =>
      `became ${pick(actual, `${figure} faster`, `${figure} slower`, "neither faster nor slower")} against ${against}`,
    advice: compared,
    description:
      "Largest growth of the result's latency relative to the baseline's; 0.05 allows 5 % more. " +
      "The baseline's result is timed again in the job's own run, and the confidence interval " +
      "decides as for `maxLatencyRatio`. Where that was not possible, the gate warns.",
    figure: ({ latency }) => latency?.result.p50Ms,
    interval: ({ latency }) => growthInterval(latency?.baseline),
    change: { worsening: growth, obstacle: latencyObstacle, needsOneRun: true },
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
