import { type Decision, noActions, type StatusPatch } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import { scheduledCondition } from "./scheduling.ts";
import { appendTransitions, updateConditions } from "./status-patch.ts";
import { isWaitReason, type Wait, waitKind } from "./waiting.ts";
import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import { conditionTypes } from "../../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import { statusCause, type StatusReason } from "../../../../src/contract/jobs/status-reasons.ts";
import { canTransition } from "../../../../src/contract/jobs/status.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/truncate.ts";
import type { ConditionValue } from "../../../../src/resources/conditions.ts";
import { interruptionTime } from "../../../../src/resources/interruption.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isWorking } from "../observe/worker-pod.ts";

/** Reports what the job waits for, or that it no longer waits, unless that is reported already. */
export function reportWait(observed: ObservedState, wait: Wait | undefined): Decision {
  const patch = waitPatch(observed, wait);
  if (patch === undefined) return noActions;
  const write = { type: "writeStatus", patch } as const;
  if (wait === undefined || isSaidByCondition(observed, wait)) return { actions: [write] };
  const warning = !waitKind(wait).intended;
  const reason = pascalCase(wait.reason);
  return {
    actions: [write, { type: "recordEvent", warning, reason, message: wait.message }],
  };
}

/** As of a job that was still working when its wait was reported. */
function isSaidByCondition(observed: ObservedState, wait: Wait): boolean {
  if (waitKind(wait).hasNode) return false;
  const { conditions = [] } = observed.resource.status;
  const said = scheduledCondition(observed, wait);
  return said !== undefined && conditions.some((known) => isSame(known, said));
}

/** What a job that is Pending waits for; nothing where its status has that already. */
interface PendingPatch extends Pick<StatusPatch, "status" | "transitions"> {
  readonly statusReason?: StatusReason;
  readonly statusMessage?: string;
}

/**
 * Reports what a job waits for, or that it no longer waits, in a condition, and of a job without a
 * pod that runs in its status. Undefined where the status has it already.
 */
function waitPatch(observed: ObservedState, wait: Wait | undefined): StatusPatch | undefined {
  const { resource, jobId } = observed;
  const { status, metadata } = resource;
  const reasonPatch = interruptionPatch(observed, wait) ?? pendingReasonPatch(status, wait);
  const patch = { ...reasonPatch, ...conditionsPatch(observed, wait, reasonPatch) };
  if (Object.keys(patch).length === 0) return undefined;
  return { jobId, observedGeneration: metadata.generation, ...patch };
}

/**
 * Takes a job back to Pending whose pods the cluster took away and that waits for others. Undefined
 * as long as one of its pods runs.
 */
function interruptionPatch(
  { resource, pods, now }: ObservedState,
  wait: Wait | undefined,
): PendingPatch | undefined {
  const { spec, status } = resource;
  if (wait === undefined || pods.some(isWorking)) return undefined;
  if (!canTransition(spec.kind, status.status, "Pending")) return undefined;
  const message = truncate(wait.message, textLimits.statusMessage);
  const { reason } = wait;
  const at = new Date(now).toISOString();
  return {
    status: "Pending",
    statusReason: reason,
    statusMessage: message,
    transitions: appendTransitions(status, [{ status: "Pending", at, reason, message }]),
  };
}

function pendingReasonPatch(current: CompressionJobStatus, wait: Wait | undefined): PendingPatch {
  const { status, statusReason, statusMessage } = current;
  if (status !== "Pending") return {};
  // What follows the wait for the first pod is that it works.
  const isForFirstPod =
    statusReason === "waiting_for_pod" && interruptionTime(current) === undefined;
  const isOver = isWaitReason(statusReason) && !isForFirstPod;
  if (wait === undefined && !isOver) return {};
  const { reason, ...cause } = wait ?? statusCause("starting");
  const message = truncate(cause.message, textLimits.statusMessage);
  if (statusReason === reason && statusMessage === message) return {};
  return { statusReason: reason, statusMessage: message };
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

/** The condition `Suspended`; undefined for a job that never was. */
function suspendedCondition(
  { resource }: ObservedState,
  wait: Wait | undefined,
): ConditionValue | undefined {
  const type = conditionTypes.suspended;
  if (wait?.reason === "suspended") {
    return { type, status: "True", reason: "Suspended" satisfies EventReason, message: "" };
  }
  const before = resource.status.conditions?.find((condition) => condition.type === type);
  return before?.status === "True"
    ? { type, status: "False", reason: "Resumed" satisfies EventReason, message: "" }
    : before;
}
