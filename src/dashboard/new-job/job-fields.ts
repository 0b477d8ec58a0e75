import { type Signal, signal } from "@preact/signals";
import type { Job, JobRequest } from "../../contract/jobs/job.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import { jobTitle } from "../../report/render-job.ts";
import type { FieldMessages } from "../shared/field-errors.ts";

/** Gates that the form offers, with their labels. */
export const offeredGates = {
  maxSizeRatio: "Largest size, of the original's",
  minSqnrDb: "Least SQNR, dB",
  minCosine: "Least cosine",
  minTop1: "Least share of equal top classes",
  maxLatencyRatio: "Largest latency, of the original's",
} as const;
export type OfferedGate = keyof typeof offeredGates;
export const gateNames = Object.keys(offeredGates) as OfferedGate[];

/** What a person has typed and chosen for a new job, besides its file. */
export interface JobFields {
  /** Address of the model, where no file was chosen. */
  readonly source: Signal<string>;
  readonly kind: Signal<JobKind>;
  readonly target: Signal<string>;
  /** Empty for the target's own. */
  readonly scheme: Signal<string>;
  /** The recipe's other fields as JSON; empty for the target's own. */
  readonly recipe: Signal<string>;
  readonly gates: Readonly<Record<OfferedGate, Signal<string>>>;
  readonly messages: Signal<FieldMessages>;
  /** The job that is run again with changes. */
  readonly from: Job | undefined;
}

/** Empty fields, or those of a job's request. */
export function createJobFields(from?: Job): JobFields {
  const { scheme = "", ...recipe } = from?.recipe ?? {};
  return {
    source: signal(from?.model.source ?? ""),
    kind: signal<JobKind>(from?.kind ?? "compress"),
    target: signal(from?.target ?? ""),
    scheme: signal(scheme),
    recipe: signal(from === undefined ? "" : JSON.stringify(recipe, undefined, 2)),
    gates: createGates(from?.gateLimits),
    messages: signal<FieldMessages>({}),
    from,
  };
}

function createGates(limits: Job["gateLimits"] = {}): JobFields["gates"] {
  const entries = gateNames.map((gate) => [gate, signal(String(limits[gate] ?? ""))]);
  return Object.fromEntries(entries) as JobFields["gates"];
}

/** What a job that is run again takes from the first one without being asked. */
export function listKeptFields({ from }: JobFields): Partial<JobRequest> {
  if (from === undefined) return {};
  const { name, target, model, labels, deadlineSeconds, dryRun } = from;
  const isNamed = name !== jobTitle({ model: model.name, target });
  return { labels, deadlineSeconds, dryRun, name: isNamed ? name : undefined };
}
