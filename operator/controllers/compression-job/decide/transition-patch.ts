import type { JobError } from "../../../../src/contract/errors.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../../../src/contract/jobs/status.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import { lifecycleConditions } from "../../../../src/resources/lifecycle-conditions.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { StatusPatch } from "./decision.ts";
import { appendTransition } from "./append-transition.ts";
import { updateConditions } from "./update-conditions.ts";

interface StatusTransition {
  readonly to: JobStatus;
  readonly cause: StatusCause;
  readonly error?: JobError;
  /** When the work started, milliseconds since 1970. */
  readonly startedAt?: number | undefined;
}

/**
 * Takes a job to another status, also past statuses in between that were not observed: a worker
 * whose reports did not arrive may have sharded and optimized. Undefined where the transition table
 * has no way there.
 */
export function transitionPatch(
  observed: ObservedState,
  { to, cause, error, startedAt }: StatusTransition,
): StatusPatch | undefined {
  const { resource, jobId, now } = observed;
  const { spec, status, metadata } = resource;
  if (!leadsTo(spec.kind, status.status, to)) return undefined;
  const { reason } = cause;
  const message = truncate(cause.message, textLimits.statusMessage);
  const at = new Date(now).toISOString();
  const patch: StatusPatch = {
    jobId,
    status: to,
    statusReason: reason,
    statusMessage: message,
    observedGeneration: metadata.generation,
    transitions: appendTransition(status, { status: to, at, reason, message }),
    conditions: updateConditions(observed, lifecycleConditions(to, message, status.conditions)),
  };
  if (startedAt !== undefined) patch.startedAt = new Date(startedAt).toISOString();
  if (status.startedAt !== undefined) patch.startedAt = status.startedAt;
  if (error !== undefined) {
    patch.error = { ...error, message: truncate(error.message, textLimits.statusMessage) };
  }
  if (isTerminal(to)) patch.finishedAt = at;
  return patch;
}
