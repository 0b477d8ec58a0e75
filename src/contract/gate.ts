import { z } from "zod";
import type { Telemetry } from "./telemetry.ts";

interface GateKind {
  /** Whether the figure may not rise above the limit, or not fall below it. */
  readonly bound: "max" | "min";
  readonly description: string;
  readonly measure: (telemetry: Telemetry) => number | undefined;
}

/** Every gate that a job can have, with the figure it holds. */
export const gateTable = {
  maxSizeRatio: {
    bound: "max",
    description: "Largest size of the result relative to the original.",
    measure: (telemetry) => telemetry.size?.ratio,
  },
  minSqnrDb: {
    bound: "min",
    description: "Least SQNR of any output, dB.",
    measure: (telemetry) => telemetry.accuracy?.sqnrDb,
  },
  minCosine: {
    bound: "min",
    description: "Least cosine similarity of any output.",
    measure: (telemetry) => telemetry.accuracy?.cosine,
  },
  maxLatencyRatio: {
    bound: "max",
    description: "Largest median latency of the result relative to the original's in the same run.",
    measure: (telemetry) => telemetry.latency?.ratio,
  },
} as const satisfies Record<string, GateKind>;

export type GateName = keyof typeof gateTable;
export const gateName = z.enum(Object.keys(gateTable) as [GateName, ...GateName[]]);

/** Limits on telemetry figures. */
export const gateLimits = z
  .strictObject({
    maxSizeRatio: z.number().positive().optional().describe(gateTable.maxSizeRatio.description),
    minSqnrDb: z.number().optional().describe(gateTable.minSqnrDb.description),
    minCosine: z.number().min(-1).max(1).optional().describe(gateTable.minCosine.description),
    maxLatencyRatio: z.number().positive().optional().describe(gateTable.maxLatencyRatio.description),
  } satisfies Record<GateName, z.ZodType>)
  .meta({ id: "GateLimits" });
export type GateLimits = z.infer<typeof gateLimits>;

export const gateResult = z
  .object({
    gate: gateName,
    limit: z.number(),
    actual: z
      .number()
      .nullable()
      .describe("The measured figure; null where it was not measured, which fails the gate."),
    passed: z.boolean(),
  })
  .meta({ id: "GateResult" });
export type GateResult = z.infer<typeof gateResult>;

/** Holds the telemetry of a finished job against its limits. A figure that was not measured fails its gate. */
export function evaluateGates(limits: GateLimits, telemetry: Telemetry): GateResult[] {
  return gateName.options.flatMap((gate) => {
    const limit = limits[gate];
    if (limit === undefined) return [];
    const actual = gateTable[gate].measure(telemetry) ?? null;
    const passed = actual !== null && (gateTable[gate].bound === "max" ? actual <= limit : actual >= limit);
    return [{ gate, limit, actual, passed }];
  });
}
