import type { StatusPatch } from "./decision.ts";
import { statusLimits } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { Condition } from "../../../../src/contract/custom-resources/condition.ts";
import type { JobError } from "../../../../src/contract/errors.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../../../src/contract/jobs/status.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import { lifecycleConditions } from "../../../../src/resources/lifecycle-conditions.ts";
import { withCondition } from "../../../../src/resources/with-condition.ts";
import type { ObservedState } from "../observe/observed-state.ts";

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

type Transitions = NonNullable<CompressionJobStatus["transitions"]>;

/** The last transitions of a status and this one. */
export function appendTransition(
  { transitions = [] }: CompressionJobStatus,
  transition: Transitions[number],
): Transitions {
  return [...transitions, transition].slice(-statusLimits.transitions);
}

/** The resource's conditions with these. */
export function updateConditions(
  { resource, now }: ObservedState,
  updates: readonly Pick<Condition, "type" | "status" | "reason" | "message">[],
): Condition[] {
  const { status, metadata } = resource;
  return updates.reduce<Condition[]>(
    (all, condition) =>
      withCondition(all, { ...condition, observedGeneration: metadata.generation }, new Date(now)),
    status.conditions ?? [],
  );
}
