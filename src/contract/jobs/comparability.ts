import type { Accuracy, Telemetry } from "./telemetry.ts";
import { truncate } from "../text/truncate.ts";

/** What a job has measured, or what a baseline keeps of it. */
export interface MeasuredFigures extends Pick<Telemetry, "size" | "latency" | "device"> {
  readonly accuracy?: (Omit<Accuracy, "outputs"> & Partial<Pick<Accuracy, "outputs">>) | undefined;
}

/** What two measurements must have in common to be compared. */
type Fact = readonly [
  name: string,
  read: (figures: MeasuredFigures) => number | string | undefined,
];

const hardware: readonly Fact[] = [
  ["execution provider", ({ device }) => device?.executionProvider],
  ["processor", ({ device }) => device?.name],
  ["list of instruction sets", ({ device }) => device?.instructionSets?.join(", ")],
  ["number of cores", ({ device }) => device?.cores],
  ["number of threads", ({ device }) => device?.threads],
  ["runtime", ({ device }) => device?.runtime],
];

const evaluation: readonly Fact[] = [
  ["evaluation level", ({ accuracy }) => accuracy?.level],
  ["kind of samples", ({ accuracy }) => accuracy?.data],
];

const evaluationData: Fact = [
  "SHA-256 of the evaluation data",
  ({ accuracy }) => accuracy?.dataSha256,
];

/** A median of fewer runs says nothing about a change. */
const minLatencyRuns = 3;

/** A note with two facts has at most 300 characters. */
const maxFactLength = 100;

/** Why two latencies cannot be compared; undefined where they can. */
export function latencyObstacle(now: MeasuredFigures, before: MeasuredFigures): string | undefined {
  const runs = Math.min(now.latency?.result.runs ?? 0, before.latency?.result.runs ?? 0);
  if (runs < minLatencyRuns) {
    return `A change of latency needs ${minLatencyRuns} runs on both sides, not ${runs}`;
  }
  return firstDifference(hardware, now, before);
}

/** Why two SQNRs cannot be compared; undefined where they can. */
export function sqnrObstacle(now: MeasuredFigures, before: MeasuredFigures): string | undefined {
  // Baselines of earlier versions of the service do not say what they were measured on.
  const isKnown = [now, before].every(({ accuracy }) => accuracy?.dataSha256 !== undefined);
  return firstDifference(isKnown ? [...evaluation, evaluationData] : evaluation, now, before);
}

/**
 * What an accuracy was measured on, in a word that is equal for those that can be compared: their
 * level or their samples, with the start of the SHA-256 of a caller's file.
 */
export function accuracyBasis({ level, data, dataSha256 }: Accuracy): string {
  if (level === "weights") return level;
  return dataSha256 === undefined ? data : `${data}-${dataSha256.slice(0, 12)}`;
}

function firstDifference(
  facts: readonly Fact[],
  now: MeasuredFigures,
  before: MeasuredFigures,
): string | undefined {
  const differing = facts.find(([, read]) => read(now) !== read(before));
  if (differing === undefined) return undefined;
  const [name, read] = differing;
  const format = (figures: MeasuredFigures) =>
    truncate(String(read(figures) ?? "unknown"), maxFactLength);
  return `Not comparable: the ${name} is "${format(now)}", the baseline's "${format(before)}"`;
}
