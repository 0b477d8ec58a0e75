import { z } from "zod";
import { formatTimes } from "../text/format-figure.ts";
import { shownLine } from "../text/shown-line.ts";

/** More than the longest deadline of a job has. */
const milliseconds = z.number().min(0).max(1e9);

/** Most that a ratio of sizes or latencies, or a perplexity, is reported as. */
export const maxRatio = 1e10;
export const measuredRatio = z.number().min(0).max(maxRatio);

const modelLatency = z.object({
  p50Ms: milliseconds.describe("Median, milliseconds."),
  p95Ms: milliseconds.optional().describe("Absent where fewer than 100 runs were timed."),
  p99Ms: milliseconds.optional().describe("Absent where fewer than 500 runs were timed."),
  runs: z.int().min(0).describe("Timed runs in all sessions."),
});
export type ModelLatency = z.infer<typeof modelLatency>;

const latencyRatio = z.object({
  ratio: measuredRatio.describe(
    "Latency of the result relative to the original's: the geometric mean of sessions.",
  ),
  ratioLow: measuredRatio
    .optional()
    .describe(
      "Least ratio of the 95 % confidence interval, which is over sessions. After few sessions " +
        "it can be as wide as 0 to 10000000000: where its ends differ by a factor of more than " +
        "4, reports say in words that the sessions are too few, as consumers should.",
    ),
  ratioHigh: measuredRatio.optional().describe("Largest ratio of that interval."),
  sessions: z.int().min(0).optional().describe("How often both models were opened and timed."),
});
export type LatencyRatio = z.infer<typeof latencyRatio>;

/** Most input shapes that telemetry has a latency of. */
export const maxLatencyShapes = 4;

const shapeLatency = latencyRatio.omit({ sessions: true }).extend({
  inputs: shownLine(120).describe(
    "The inputs' names, element types and shapes; of a language model how many tokens, such as " +
      "`1 token after 340`.",
  ),
  originalP50Ms: milliseconds.describe("Median of the original, milliseconds."),
  resultP50Ms: milliseconds.describe("Median of the result, milliseconds."),
});

export const latency = latencyRatio.extend({
  original: modelLatency.describe("Of the original."),
  result: modelLatency.describe("Of the result."),
  shapes: z
    .array(shapeLatency)
    .max(maxLatencyShapes)
    .optional()
    .describe(
      "Where there are several input shapes, such as a prompt and a token that is generated after " +
        "it. The other figures are those of the shape with the highest ratio.",
    ),
  baseline: latencyRatio
    .optional()
    .describe("Of the result relative to the baseline's own result, timed in the same way."),
});
export type Latency = z.infer<typeof latency>;

/** An interval whose ends differ by a larger factor leaves open half the ratio and the double. */
const widestFactor = 4;

/**
 * What people read in place of an interval that says nothing, such as `timed in 2 sessions: too few
 * for an interval`; undefined for one that says something, and if there is none.
 */
export function explainWideInterval({
  ratioLow = 1,
  ratioHigh = 1,
  sessions,
}: Omit<LatencyRatio, "ratio">): string | undefined {
  if (ratioHigh <= widestFactor * ratioLow) return undefined;
  return sessions === undefined
    ? "timed in too few sessions for an interval"
    : `timed in ${sessions} sessions: too few for an interval`;
}

/**
 * Instruction sets that decide which kernels ONNX Runtime chooses, by their flags in
 * `/proc/cpuinfo`; x86, then Arm.
 */
export const instructionSets = [
  "sse4_2",
  "avx",
  "avx2",
  "fma",
  "f16c",
  "avx512f",
  "avx512_vnni",
  "avx_vnni",
  "avx512_bf16",
  "amx_int8",
  "amx_bf16",
  "neon",
  "asimd",
  "asimddp",
  "i8mm",
  "sve",
] as const;

/**
 * A ratio of latencies with its confidence interval, for people: `×0.98 (0.97 to 1.00)`, or why
 * the interval says nothing.
 */
export function formatRatio(latency: LatencyRatio): string {
  const { ratio, ratioLow, ratioHigh } = latency;
  const text = formatTimes(ratio);
  if (ratioLow === undefined || ratioHigh === undefined) return text;
  return `${text} (${explainWideInterval(latency) ?? formatInterval(ratioLow, ratioHigh)})`;
}

/** The ends of a ratio's interval: `0.97 to 1.00`. */
export function formatInterval(low: number, high: number): string {
  return `${low.toFixed(2)} to ${high.toFixed(2)}`;
}
