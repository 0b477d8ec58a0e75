import type { StatusPatch } from "./decision.ts";
import { statusLimits } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { Condition } from "../../../../src/contract/custom-resources/condition.ts";
import type { JobError } from "../../../../src/contract/errors.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import { isTerminal, type JobStatus, leadsTo } from "../../../../src/contract/jobs/status.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/truncate.ts";
import {
  type ConditionValue,
  lifecycleConditions,
  ofGeneration,
  withCondition,
} from "../../../../src/resources/conditions.ts";
import type { ObservedState } from "../observe/observed-state.ts";

interface StatusDetails {
  readonly startedAt?: string | undefined;
  readonly error?: JobError | undefined;
}

/**
 * Takes a job to another status, also past statuses in between that were not observed: a worker
 * whose reports did not arrive may have sharded and optimized. Undefined where the transition table
 * has no way there.
 */
export function transitionPatch(
  observed: ObservedState,
  to: JobStatus,
  { reason, message }: StatusCause,
  details: StatusDetails = {},
): StatusPatch | undefined {
  const { spec, status } = observed.resource;
  if (!leadsTo(spec.kind, status.status, to)) return undefined;
  const at = new Date(observed.now).toISOString();
  const transition = {
    status: to,
    at,
    reason,
    message: truncate(message, textLimits.statusMessage),
  };
  return statusPatch(observed, transition, details);
}

type Transition = NonNullable<CompressionJobStatus["transitions"]>[number];

/** The status after a transition, and after others that came before it. */
export function statusPatch(
  observed: ObservedState,
  transition: Transition,
  { startedAt, error }: StatusDetails,
  earlier: readonly Transition[] = [],
): StatusPatch {
  const { jobId, resource } = observed;
  const { status: before, metadata } = resource;
  const { status, at, reason, message } = transition;
  const patch: StatusPatch = {
    jobId,
    status,
    statusReason: reason,
    statusMessage: message,
    observedGeneration: metadata.generation,
    transitions: appendTransitions(before, [...earlier, transition]),
    conditions: updateConditions(
      observed,
      lifecycleConditions(status, message ?? "", before.conditions),
    ),
  };
  const begun = before.startedAt ?? startedAt;
  if (begun !== undefined) patch.startedAt = begun;
  if (error !== undefined) {
    patch.error = { ...error, message: truncate(error.message, textLimits.statusMessage) };
  }
  if (isTerminal(status)) patch.finishedAt = at;
  return patch;
}

/** The last transitions of a status and these. */
export function appendTransitions(
  { transitions = [] }: CompressionJobStatus,
  added: readonly Transition[],
): Transition[] {
  return [...transitions, ...added].slice(-statusLimits.transitions);
}

/** The resource's conditions with these, all for its present generation. */
export function updateConditions(
  { resource, now }: ObservedState,
  updates: readonly ConditionValue[],
): Condition[] {
  const { generation } = resource.metadata;
  return updates.reduce<Condition[]>(
    (all, condition) =>
      withCondition(all, { ...condition, observedGeneration: generation }, new Date(now)),
    ofGeneration(resource.status.conditions, generation),
  );
}
