import type { OwnStatusReason } from "../../../../src/contract/jobs/status-reasons.ts";
import type { Target } from "../../../../src/contract/jobs/target.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";

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
  worker_silent: { hasNode: true, intended: false },
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
  readonly now: number;
  readonly target: Target;
  /** Why the job waits, as its status says it. */
  readonly statusReason: string | undefined;
  /** Whether a worker of the job has worked on it before. */
  readonly hasBegun: boolean;
  /** When the last pod of the job was lost, of those that were, milliseconds since 1970. */
  readonly lostAt: number | undefined;
  /** The cluster's warning about the worker Job or its pods; empty if there is none. */
  readonly warningMessage: string;
}

export function isWaitReason(reason: string | undefined): boolean {
  return reason !== undefined && Object.hasOwn(waitKinds, reason);
}

export function waitKind({ reason }: Wait): WaitKind {
  return waitKinds[reason];
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
