import type { Target } from "../../../../src/contract/target.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { unschedulableText } from "./unschedulable-text.ts";
import {
  podStartTime,
  isFailingToStart,
  isBeingPrepared,
  mayRun,
  type WorkerPod,
} from "../observe/worker-pod.ts";

interface WaitKind {
  /** Whether the pods have nodes all the same. */
  readonly hasNode: boolean;
  /** Whether it is as somebody wanted it. */
  readonly intended: boolean;
}

/** What a job can wait for, by the stable code of its status. */
const waitKinds = {
  suspended: { hasNode: false, intended: true },
  waiting_for_queue: { hasNode: false, intended: true },
  quota_exceeded: { hasNode: false, intended: false },
  pod_refused: { hasNode: false, intended: false },
  name_in_use: { hasNode: false, intended: false },
  unschedulable: { hasNode: false, intended: false },
  image_unavailable: { hasNode: true, intended: false },
  pod_not_starting: { hasNode: true, intended: false },
} as const satisfies Record<string, WaitKind>;

export interface Wait {
  readonly reason: keyof typeof waitKinds;
  readonly message: string;
}

export interface WaitingStep {
  readonly workerJob: WorkerJob;
  /** Those of the job. */
  readonly pods: readonly WorkerPod[];
  readonly target: Target;
  /** Queue of Kueue that the job is admitted by. */
  readonly queue: string | undefined;
  /** What the cluster's events say about pods that are not made or not started. */
  readonly stepWarning: string;
}

export function isWaitReason(reason: string | undefined): boolean {
  return reason !== undefined && Object.hasOwn(waitKinds, reason);
}

export function waitKind({ reason }: Wait): WaitKind {
  return waitKinds[reason];
}

/** Reasons of containers that wait for their image. */
const imageReasons: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
]);

/** What a step of a job waits for, and since when; the first reason of these counts. */
export function findWait(
  step: WaitingStep,
): { readonly wait: Wait; readonly since: number } | undefined {
  for (const check of [
    checkSuspended,
    checkMissingPods,
    checkUnscheduledPod,
    checkUnstartedPod,
    checkPodWarning,
  ]) {
    const waiting = check(step);
    if (waiting !== undefined) return waiting;
  }
  return undefined;
}

function checkSuspended({ workerJob, queue }: WaitingStep) {
  if (!workerJob.suspended) return undefined;
  const wait: Wait =
    queue === undefined
      ? { reason: "suspended", message: `The Job "${workerJob.name}" is suspended` }
      : { reason: "waiting_for_queue", message: `Waiting to be admitted by the queue "${queue}"` };
  return { wait, since: workerJob.createdAt };
}

function checkMissingPods({ workerJob, pods, stepWarning }: WaitingStep) {
  if (stepWarning === "" || pods.some(mayRun)) return undefined;
  return { wait: rejectionWait(stepWarning), since: workerJob.createdAt };
}

function checkUnscheduledPod({ pods, target }: WaitingStep) {
  const pod = pods.find(
    ({ unscheduled, deletionDeadline }) =>
      unscheduled !== undefined && deletionDeadline === undefined,
  );
  if (pod?.unscheduled === undefined) return undefined;
  const { message, since } = pod.unscheduled;
  return {
    wait: { reason: "unschedulable", message: unschedulableText(message, target) } as const,
    since,
  };
}

function checkUnstartedPod({ pods }: WaitingStep) {
  const pod = pods.find(isFailingToStart);
  if (pod?.waiting === undefined) return undefined;
  return { wait: unstartedWait(pod.waiting), since: podStartTime(pod) };
}

function checkPodWarning({ pods, stepWarning }: WaitingStep) {
  const pod = pods.find(isBeingPrepared);
  if (stepWarning === "" || pod === undefined) return undefined;
  return { wait: warningWait(stepWarning), since: podStartTime(pod) };
}

/** What a container that does not start waits for. */
export function unstartedWait({ reason, message }: { reason: string; message: string }): Wait {
  const details = message === "" ? "" : `: ${message}`;
  return imageReasons.has(reason)
    ? {
        reason: "image_unavailable",
        message: `The worker's image cannot be pulled (${reason})${details}`,
      }
    : {
        reason: "pod_not_starting",
        message: `The worker's pod cannot be started (${reason})${details}`,
      };
}

/** What a job waits for whose pod cannot be prepared on its node. */
export function warningWait(warningMessage: string): Wait {
  return {
    reason: "pod_not_starting",
    message: `The worker's pod cannot be started: ${warningMessage}`,
  };
}

/** What a job waits for whose Job or pods are refused by the cluster. */
export function rejectionWait(message: string): Wait {
  const quota = /exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)/.exec(
    message,
  );
  if (quota === null)
    return { reason: "pod_refused", message: `The cluster refuses the worker's pod: ${message}` };
  const [, name, requested, used, limited] = quota;
  const figures = `it needs ${requested}, and of ${limited} there are ${used} in use`;
  return { reason: "quota_exceeded", message: `Waiting for the quota "${name}": ${figures}` };
}
