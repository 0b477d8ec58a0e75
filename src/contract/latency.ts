import { z } from "zod";

const modelLatency = z.object({
  p50Ms: z.number().describe("Median, milliseconds."),
  p95Ms: z.number().optional().describe("Absent where fewer than 100 runs were timed."),
  p99Ms: z.number().optional().describe("Absent where fewer than 500 runs were timed."),
  runs: z.int().min(0).describe("Timed runs in all sessions."),
});
export type ModelLatency = z.infer<typeof modelLatency>;

const latencyRatio = z.object({
  ratio: z
    .number()
    .describe("Latency of the result relative to the original's: the geometric mean of sessions."),
  ratioLow: z
    .number()
    .optional()
    .describe(
      "Least ratio of the 95 % confidence interval, which is over sessions. After few sessions " +
        "it can be as wide as 0 to 10000000000: where its ends differ by a factor of more than " +
        "4, reports say in words that the sessions are too few, as consumers should.",
    ),
  ratioHigh: z.number().optional().describe("Largest ratio of that interval."),
  sessions: z
    .int()
    .min(0)
    .optional()
    .describe("Times that both models were opened anew and timed."),
});
export type LatencyRatio = z.infer<typeof latencyRatio>;

/** Most input shapes that telemetry has a latency of. */
export const maxLatencyShapes = 4;

const shapeLatency = latencyRatio.omit({ sessions: true }).extend({
  inputs: z.string().max(120).describe("The inputs' names, element types and shapes."),
  originalP50Ms: z.number().describe("Median of the original, milliseconds."),
  resultP50Ms: z.number().describe("Median of the result, milliseconds."),
});

export const latency = latencyRatio.extend({
  original: modelLatency,
  result: modelLatency,
  shapes: z
    .array(shapeLatency)
    .max(maxLatencyShapes)
    .optional()
    .describe("Where there are several input shapes. The other figures are of the slowest one's."),
  baseline: latencyRatio
    .optional()
    .describe("Of the result relative to the baseline's own result, timed in the same way."),
});
export type Latency = z.infer<typeof latency>;
