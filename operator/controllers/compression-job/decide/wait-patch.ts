import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import { conditionTypes } from "../../../../src/contract/custom-resources/condition.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { statusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { StatusPatch } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import {
  interruptionPatch,
  isWaitReason,
  type PendingPatch,
  suspendedCondition,
  type Wait,
} from "./waiting.ts";
import { scheduledCondition } from "./scheduling.ts";
import type { ConditionValue } from "../../../../src/resources/with-condition.ts";
import { updateConditions } from "./status-patch.ts";

/**
 * Reports what a job waits for, or that it no longer waits, in a condition, and of a job without a
 * pod that runs in its status. Undefined where the status has it already.
 */
export function waitPatch(
  observed: ObservedState,
  wait: Wait | undefined,
): StatusPatch | undefined {
  const { resource, jobId } = observed;
  const { status, metadata } = resource;
  const reasonPatch = interruptionPatch(observed, wait) ?? pendingReasonPatch(status, wait);
  const patch = { ...reasonPatch, ...conditionsPatch(observed, wait, reasonPatch) };
  if (Object.keys(patch).length === 0) return undefined;
  return { jobId, observedGeneration: metadata.generation, ...patch };
}

function conditionsPatch(
  observed: ObservedState,
  wait: Wait | undefined,
  cause: PendingPatch,
): StatusPatch {
  const { conditions = [] } = observed.resource.status;
  const changed = [
    scheduledCondition(observed, wait),
    suspendedCondition(observed, wait),
    readyCondition(cause),
  ]
    .flatMap((condition) => condition ?? [])
    .filter((condition) => !conditions.some((known) => isSame(known, condition)));
  return changed.length === 0 ? {} : { conditions: updateConditions(observed, changed) };
}

/** `Ready` says what a job waits for from then on. */
function readyCondition({ statusReason, statusMessage = "" }: PendingPatch) {
  if (statusReason === undefined) return undefined;
  const message = truncate(statusMessage, textLimits.conditionMessage);
  const { ready: type } = conditionTypes;
  return { type, status: "False", reason: pascalCase(statusReason), message } as const;
}

function isSame(one: ConditionValue, other: ConditionValue): boolean {
  const { type, status, reason, message } = other;
  return (
    one.type === type && one.status === status && one.reason === reason && one.message === message
  );
}

function pendingReasonPatch(
  { status, statusReason, statusMessage }: CompressionJobStatus,
  wait: Wait | undefined,
): PendingPatch {
  if (status !== "Pending") return {};
  // What follows the wait for the first pod is that it works.
  const isOver = isWaitReason(statusReason) && statusReason !== "waiting_for_pod";
  if (wait === undefined && !isOver) return {};
  const { reason, ...cause } = wait ?? statusCause("starting");
  const message = truncate(cause.message, textLimits.statusMessage);
  if (statusReason === reason && statusMessage === message) return {};
  return { statusReason: reason, statusMessage: message };
}
