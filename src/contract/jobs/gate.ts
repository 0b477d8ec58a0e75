import { z } from "zod";
import { gateName, type GateName, gateTable } from "./gate-table.ts";

const limitSchemas = {
  maxSizeRatio: z.number().positive(),
  minSqnrDb: z.number(),
  minCosine: z.number().min(-1).max(1),
  minTop1: z.number().min(0).max(1),
  maxPerplexityRatio: z.number().positive(),
  maxKlDivergence: z.number().min(0),
  maxLatencyRatio: z.number().positive(),
  maxSizeRegression: z.number().min(0),
  maxSqnrDropDb: z.number().min(0),
  maxLatencyRegression: z.number().min(0),
} satisfies Record<GateName, z.ZodNumber>;

function limitSchema<Name extends GateName>(gate: Name) {
  return limitSchemas[gate].optional().describe(gateTable[gate].description);
}

/** Limits on telemetry figures. */
export const gateLimits = z
  .strictObject({
    maxSizeRatio: limitSchema("maxSizeRatio"),
    minSqnrDb: limitSchema("minSqnrDb"),
    minCosine: limitSchema("minCosine"),
    minTop1: limitSchema("minTop1"),
    maxPerplexityRatio: limitSchema("maxPerplexityRatio"),
    maxKlDivergence: limitSchema("maxKlDivergence"),
    maxLatencyRatio: limitSchema("maxLatencyRatio"),
    maxSizeRegression: limitSchema("maxSizeRegression"),
    maxSqnrDropDb: limitSchema("maxSqnrDropDb"),
    maxLatencyRegression: limitSchema("maxLatencyRegression"),
    warnGates: z
      .array(gateName)
      .max(gateName.options.length)
      .optional()
      .describe("Gates that warn instead of failing where they do not pass."),
  } satisfies Record<GateName | "warnGates", z.ZodType>)
  .meta({ id: "GateLimits" });
export type GateLimits = z.infer<typeof gateLimits>;

export const gateResult = z
  .object({
    gate: gateName.describe("Which of the job's limits."),
    limit: z.number().describe("The limit that was asked for."),
    actual: z
      .number()
      .nullable()
      .describe(
        "The measured figure, or how much worse than the baseline's it is; null where it was " +
          "not measured, which fails the gate.",
      ),
    baseline: z
      .number()
      .nullable()
      .describe(
        "The baseline's figure: bytes, dB or milliseconds; null for gates that do not compare " +
          "with it.",
      )
      .default(null),
    interval: z
      .object({
        low: z.number().describe("Its least value."),
        high: z.number().describe("Its largest value."),
      })
      .optional()
      .describe("Where `actual` is known to lie, with 95 % confidence."),
    level: z
      .enum(["fail", "warn"])
      .default("fail")
      .describe(
        "What it means if the gate does not pass. A change that cannot be computed, such as " +
          "without a baseline, warns, and so does a figure that is not known well enough.",
      ),
    passed: z.boolean().describe("Whether the figure keeps the limit."),
    note: z
      .string()
      .max(300)
      .optional()
      .describe("Why the figures could not be compared, or not well enough."),
  })
  .meta({ id: "GateResult" });
export type GateResult = z.infer<typeof gateResult>;

/** Whether a gate of the level `fail` did not pass. */
export function hasFailedGate(gates: readonly Pick<GateResult, "level" | "passed">[]): boolean {
  return gates.some(({ level, passed }) => level === "fail" && !passed);
}

/** Whether the limits say how much worse than its baseline's a job's figure may be. */
export function comparesWithBaseline(limits: GateLimits = {}): boolean {
  return gateName.options.some((gate) => "change" in gateTable[gate] && limits[gate] !== undefined);
}
