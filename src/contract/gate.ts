import { z } from "zod";
import type { Baseline } from "./baseline.ts";
import { latencyObstacle, type MeasuredFigures, sqnrObstacle } from "./comparability.ts";
import type { Telemetry } from "./telemetry.ts";

interface GateKind {
  /** Whether the figure may not rise above the limit, or not fall below it. */
  readonly bound: "max" | "min";
  readonly description: string;
  readonly figure: (figures: MeasuredFigures) => number | undefined;
  /** For gates that hold how much worse than the baseline's the figure is, instead of the figure itself. */
  readonly change?: Change;
}

interface Change {
  readonly worsening: (now: number, before: number) => number;
  /** Why the two cannot be compared, though both have the figure. */
  readonly obstacle?: (now: MeasuredFigures, before: MeasuredFigures) => string | undefined;
  /** Why the difference means nothing, whatever its share. */
  readonly excuse?: (difference: number, settings: NoiseSettings) => string | undefined;
}

interface NoiseSettings {
  readonly latencyNoiseMs?: number | undefined;
}

const defaultLatencyNoiseMs = 0.1;

/** Every gate that a job can have, with the figure it holds. */
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
      "Largest growth of the result's median latency relative to the baseline's on the same hardware; 0.05 allows 5 % more.",
    figure: ({ latency }) => latency?.result.p50Ms,
    change: { worsening: growth, obstacle: latencyObstacle, excuse: latencyExcuse },
  },
} as const satisfies Record<string, GateKind>;

export type GateName = keyof typeof gateTable;
export const gateName = z.enum(Object.keys(gateTable) as [GateName, ...GateName[]]);

const limitSchemas = {
  maxSizeRatio: z.number().positive(),
  minSqnrDb: z.number(),
  minCosine: z.number().min(-1).max(1),
  minTop1: z.number().min(0).max(1),
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
    maxLatencyRatio: limitSchema("maxLatencyRatio"),
    maxSizeRegression: limitSchema("maxSizeRegression"),
    maxSqnrDropDb: limitSchema("maxSqnrDropDb"),
    maxLatencyRegression: limitSchema("maxLatencyRegression"),
    latencyNoiseMs: z
      .number()
      .min(0)
      .optional()
      .describe(
        `Milliseconds by which the median latency may grow without being held to be a regression, ${defaultLatencyNoiseMs} by default.`,
      ),
    warnGates: z
      .array(gateName)
      .max(gateName.options.length)
      .optional()
      .describe("Gates that warn instead of failing where they do not pass."),
  } satisfies Record<GateName | "latencyNoiseMs" | "warnGates", z.ZodType>)
  .meta({ id: "GateLimits" });
export type GateLimits = z.infer<typeof gateLimits>;

export const gateResult = z
  .object({
    gate: gateName,
    limit: z.number(),
    actual: z
      .number()
      .nullable()
      .describe(
        "The measured figure, or how much worse than the baseline's it is; null where it was not measured, which fails the gate.",
      ),
    baseline: z
      .number()
      .nullable()
      .default(null)
      .describe(
        "The baseline's figure: bytes, dB or milliseconds; null for gates that hold no change.",
      ),
    level: z
      .enum(["fail", "warn"])
      .default("fail")
      .describe(
        "What it means if the gate does not pass. A change that cannot be told, such as without a baseline, warns.",
      ),
    passed: z.boolean(),
    note: z
      .string()
      .max(300)
      .optional()
      .describe("Why the figures could not be compared, or were taken as equal."),
  })
  .meta({ id: "GateResult" });
export type GateResult = z.infer<typeof gateResult>;

/** Whether a gate of the level `fail` did not pass. */
export function hasFailedGate(gates: readonly Pick<GateResult, "level" | "passed">[]): boolean {
  return gates.some(({ level, passed }) => level === "fail" && !passed);
}

/**
 * Holds the telemetry of a finished job against its limits. A figure that was not measured fails its gate; a change for
 * which there is nothing to compare with warns.
 */
export function evaluateGates(
  limits: GateLimits,
  telemetry: Telemetry,
  baseline: Baseline | null,
): GateResult[] {
  return gateName.options.flatMap((gate) => {
    const gateLimit = limits[gate];
    if (gateLimit === undefined) return [];
    const { bound, figure, change }: GateKind = gateTable[gate];
    const level = limits.warnGates?.includes(gate) ? "warn" : "fail";
    const now = figure(telemetry);
    const known = { gate, limit: gateLimit, level, actual: now ?? null, baseline: null } as const;
    if (now === undefined) return [{ ...known, passed: false }];
    if (change === undefined)
      return [{ ...known, passed: bound === "max" ? now <= gateLimit : now >= gateLimit }];
    return [
      {
        ...known,
        actual: null,
        ...compareWithBaseline(change, {
          limits,
          limit: gateLimit,
          now,
          figure,
          telemetry,
          baseline,
        }),
      },
    ];
  });
}

interface ComparisonInput {
  readonly limits: GateLimits;
  readonly limit: number;
  readonly now: number;
  readonly figure: GateKind["figure"];
  readonly telemetry: Telemetry;
  readonly baseline: Baseline | null;
}

function compareWithBaseline(
  { worsening, obstacle, excuse }: Change,
  { limits, limit: most, now, figure, telemetry, baseline }: ComparisonInput,
): Partial<GateResult> & Pick<GateResult, "passed"> {
  const incomparable = { level: "warn", passed: false } as const;
  if (baseline === null) return { ...incomparable, note: "There is no baseline" };
  const before = figure(baseline);
  if (before === undefined) return { ...incomparable, note: "The baseline has no such figure" };
  const actual = worsening(now, before);
  const reason = Number.isFinite(actual)
    ? obstacle?.(telemetry, baseline)
    : "The baseline's figure is 0";
  if (reason !== undefined) return { ...incomparable, baseline: before, note: reason };
  if (actual <= most) return { actual, baseline: before, passed: true };
  const note = excuse?.(now - before, limits);
  return {
    actual,
    baseline: before,
    passed: note !== undefined,
    ...(note !== undefined && { note }),
  };
}

function growth(now: number, before: number): number {
  return (now - before) / before;
}

function latencyExcuse(
  differenceMs: number,
  { latencyNoiseMs = defaultLatencyNoiseMs }: NoiseSettings,
) {
  return differenceMs <= latencyNoiseMs
    ? `A difference within ${latencyNoiseMs} ms is taken as noise`
    : undefined;
}

function leastTop1({ accuracy }: MeasuredFigures): number | undefined {
  const known = accuracy?.outputs?.flatMap(({ top1Agreement }) => top1Agreement ?? []) ?? [];
  return known.length === 0 ? undefined : Math.min(...known);
}
