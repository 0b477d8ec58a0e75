import type { Job } from "../contract/jobs/job.ts";
import { describeGate } from "./describe-gate.ts";

/** Why a job did not pass, on one line; the empty string for a job that did. */
export function describeJobFailure({ error, gates }: Pick<Job, "error" | "gates">): string {
  if (error) return `${error.code}: ${error.message}`;
  const missed = gates.filter(({ passed }) => !passed);
  return missed.map(describeGate).join(", ");
}
