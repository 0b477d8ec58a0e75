import type { Baseline } from "./baseline.ts";
import {
  type GateChange,
  type GateInterval,
  type GateKind,
  gateName,
  gateTable,
} from "./gate-table.ts";
import type { GateLimits, GateResult } from "./gate.ts";
import type { Telemetry } from "./telemetry.ts";
import { isUndecided, timesToDecide } from "./undecided-gate.ts";

/** What the gates of one job are evaluated with. */
interface GateInput {
  readonly telemetry: Telemetry;
  readonly baseline: Baseline | null;
}

/**
 * Compares the telemetry of a finished job with its limits. A figure that was not measured fails
 * its gate; a change for which there is nothing to compare with warns, and so does a figure whose
 * interval contains the limit.
 */
export function evaluateGates(
  limits: GateLimits,
  telemetry: Telemetry,
  baseline: Baseline | null,
): GateResult[] {
  return gateName.options.flatMap((gate) => {
    const limit = limits[gate];
    if (limit === undefined) return [];
    const level = limits.warnGates?.includes(gate) ? "warn" : "fail";
    const verdict = evaluateGate(gateTable[gate], limit, { telemetry, baseline });
    return [{ gate, limit, level, actual: null, baseline: null, ...verdict }];
  });
}

/** What the evaluation of a gate adds to its name, limit and level. */
type Verdict = Partial<GateResult> & Pick<GateResult, "passed">;

function evaluateGate(kind: GateKind, limit: number, input: GateInput): Verdict {
  const { bound, figure, interval, change } = kind;
  const actual = figure(input.telemetry);
  if (actual === undefined) return { passed: false };
  const before = input.baseline === null ? undefined : figure(input.baseline);
  const measured = interval?.(input.telemetry);
  if (measured) {
    const baseline = change === undefined ? null : (before ?? null);
    return { baseline, ...compareInterval(measured, limit) };
  }
  if (change === undefined) {
    return { actual, passed: bound === "max" ? actual <= limit : actual >= limit };
  }
  return compareWithBaseline(change, { now: actual, before, limit }, input);
}

/** The figure passes or fails only where all of its interval lies on one side of the limit. */
function compareInterval(measured: GateInterval, limit: number): Verdict {
  const { actual, low, high, weakness } = measured;
  if (weakness !== undefined) return { actual, level: "warn", passed: false, note: weakness };
  const interval = { low, high };
  if (!isUndecided({ limit, interval })) return { actual, interval, passed: high <= limit };
  const range = `${formatBound(low)} to ${formatBound(high)}`;
  const missing = explainMissing(timesToDecide(actual, limit, interval));
  const note = `The confidence interval, ${range}, contains the limit. ${missing}`;
  return { actual, interval, level: "warn", passed: false, note };
}

function explainMissing(times: number | undefined): string {
  if (times === undefined) return "The figure is at the limit: no number of sessions decides it";
  return (
    `About ${times} times as many sessions would decide it: allow more of ` +
    "recipe.evaluation.latencyBudgetSeconds, or time it on a quieter machine"
  );
}

function formatBound(value: number): string {
  return value.toFixed(3);
}

interface Comparison {
  readonly now: number;
  /** The baseline's figure; undefined if there is none. */
  readonly before: number | undefined;
  /** How much worse than the baseline's the figure may be. */
  readonly limit: number;
}

function compareWithBaseline(
  { worsening, obstacle, needsOneRun = false }: GateChange,
  { now, before, limit }: Comparison,
  { telemetry, baseline }: GateInput,
): Verdict {
  const incomparable = { level: "warn", passed: false } as const;
  if (baseline === null) return { ...incomparable, note: "There is no baseline" };
  if (before === undefined) return { ...incomparable, note: "The baseline has no such figure" };
  const actual = worsening(now, before);
  const reason = Number.isFinite(actual)
    ? obstacle?.(telemetry, baseline)
    : "The baseline's figure is 0";
  if (reason !== undefined) return { ...incomparable, baseline: before, note: reason };
  if (needsOneRun) {
    const note = "The baseline's result was not timed in the same run, and separate runs differ";
    return { ...incomparable, baseline: before, note };
  }
  return { actual, baseline: before, passed: actual <= limit };
}
