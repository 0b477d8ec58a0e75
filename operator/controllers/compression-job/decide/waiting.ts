import type { StatusPatch } from "./decision.ts";
import { appendTransitions } from "./status-patch.ts";
import {
  type Condition,
  conditionTypes,
} from "../../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import type {
  OwnStatusReason,
  StatusReason,
} from "../../../../src/contract/jobs/status-reasons.ts";
import { canTransition } from "../../../../src/contract/jobs/status.ts";
import type { Target } from "../../../../src/contract/jobs/target.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";

interface WaitKind {
  /** Whether the pods have nodes all the same. */
  readonly hasNode: boolean;
  /** Whether a user asked for it. */
  readonly intended: boolean;
}

/** What a job can wait for, by its status reason. */
const waitKinds = {
  waiting_for_pod: { hasNode: true, intended: true },
  suspended: { hasNode: false, intended: true },
  waiting_for_queue: { hasNode: false, intended: true },
  quota_exceeded: { hasNode: false, intended: false },
  pod_refused: { hasNode: false, intended: false },
  name_in_use: { hasNode: false, intended: false },
  unschedulable: { hasNode: false, intended: false },
  image_unavailable: { hasNode: true, intended: false },
  pod_not_starting: { hasNode: true, intended: false },
} as const satisfies Partial<Record<OwnStatusReason, WaitKind>>;

/** What a job waits for: a status cause of these reasons. */
export interface Wait {
  readonly reason: keyof typeof waitKinds;
  readonly message: string;
}

/** What a step waits for, and since when (milliseconds since 1970). */
export interface StepWait {
  readonly wait: Wait;
  readonly since: number;
}

/** A step whose worker Job exists and has not ended. */
export interface WaitingStep {
  readonly workerJob: WorkerJob;
  /** Those of the worker Job. */
  readonly pods: readonly WorkerPod[];
  readonly target: Target;
  /** Kueue's queue that admits the job. */
  readonly queue: string | undefined;
  /** Why the job waits, as its status says it. */
  readonly statusReason: string | undefined;
  /** Whether a worker of the job has worked on it before. */
  readonly hasBegun: boolean;
  /** The cluster's warning about the worker Job or its pods; empty if there is none. */
  readonly warningMessage: string;
}

export function isWaitReason(reason: string | undefined): boolean {
  return reason !== undefined && Object.hasOwn(waitKinds, reason);
}

export function waitKind({ reason }: Wait): WaitKind {
  return waitKinds[reason];
}

/** The condition `Suspended`; undefined for a job that never was. */
export function suspendedCondition(
  { resource }: ObservedState,
  wait: Wait | undefined,
): Pick<Condition, "type" | "status" | "reason" | "message"> | undefined {
  const type = conditionTypes.suspended;
  if (wait?.reason === "suspended") {
    return { type, status: "True", reason: "Suspended" satisfies EventReason, message: "" };
  }
  const before = resource.status.conditions?.find((condition) => condition.type === type);
  return before?.status === "True"
    ? { type, status: "False", reason: "Resumed" satisfies EventReason, message: "" }
    : before;
}

/** Answers a question about the input, or leaves it to the next check. */
type Check<Input, Answer> = (input: Input) => Answer | undefined;

/** The answer of the first check that has one. */
export function firstAnswer<Input, Answer>(
  checks: readonly Check<Input, Answer>[],
  input: Input,
): Answer | undefined {
  for (const check of checks) {
    const answer = check(input);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** What a job that is Pending waits for; nothing where its status has that already. */
export interface PendingPatch extends Pick<StatusPatch, "status" | "transitions"> {
  readonly statusReason?: StatusReason;
  readonly statusMessage?: string;
}

/**
 * Takes a job back to Pending whose pods the cluster took away and that waits for others. Undefined
 * as long as one of its pods runs.
 */
export function interruptionPatch(
  { resource, pods, now }: ObservedState,
  wait: Wait | undefined,
): PendingPatch | undefined {
  const { spec, status } = resource;
  const isWorking = pods.some((pod) => pod.phase === "Running" && mayRun(pod));
  if (wait === undefined || isWorking) return undefined;
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
