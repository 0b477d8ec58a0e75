import type { Accuracy, Telemetry } from "./telemetry.ts";

/** What a job has measured, or what a baseline has kept of it. */
export interface MeasuredFigures extends Pick<Telemetry, "size" | "latency" | "device"> {
  readonly accuracy?: (Omit<Accuracy, "outputs"> & Partial<Pick<Accuracy, "outputs">>) | undefined;
}

/** A fact in which two measurements have to agree. */
type Fact = readonly [name: string, of: (figures: MeasuredFigures) => number | string | undefined];

const hardware: readonly Fact[] = [
  ["execution provider", ({ device }) => device?.executionProvider],
  ["processor", ({ device }) => device?.name],
  ["number of threads", ({ device }) => device?.threads],
  ["runtime", ({ device }) => device?.runtime],
];

const evaluation: readonly Fact[] = [
  ["evaluation level", ({ accuracy }) => accuracy?.level],
  ["kind of samples", ({ accuracy }) => accuracy?.data],
];

/** A median of fewer runs says nothing about a change. */
const minLatencyRuns = 3;

/** Why a change of latency cannot be told; undefined where it can. */
export function latencyObstacle(now: MeasuredFigures, before: MeasuredFigures): string | undefined {
  const runs = Math.min(now.latency?.result.runs ?? 0, before.latency?.result.runs ?? 0);
  if (runs < minLatencyRuns)
    return `A change of latency needs ${minLatencyRuns} runs on both sides, not ${runs}`;
  return firstDifference(hardware, now, before);
}

/** Why a change of SQNR cannot be told; undefined where it can. */
export function sqnrObstacle(now: MeasuredFigures, before: MeasuredFigures): string | undefined {
  return firstDifference(evaluation, now, before);
}

function firstDifference(
  facts: readonly Fact[],
  now: MeasuredFigures,
  before: MeasuredFigures,
): string | undefined {
  const differing = facts.find(([, of]) => of(now) !== of(before));
  if (differing === undefined) return undefined;
  const [name, of] = differing;
  return `Not comparable: the ${name} is "${abbreviateFact(of(now))}", the baseline's "${abbreviateFact(of(before))}"`;
}

function abbreviateFact(value: number | string | undefined): string {
  const text = String(value ?? "unknown");
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text;
}
