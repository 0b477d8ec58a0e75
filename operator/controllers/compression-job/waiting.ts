import type { Target } from "../../../src/contract/target.ts";
import type { ChildJob } from "./child-job.ts";
import { unschedulableText } from "./unschedulable-text.ts";
import { begunAt, failsToStart, isBeingPrepared, mayRun, type WorkerPod } from "./worker-pod.ts";

interface WaitKind {
  /** Whether the pods have nodes all the same. */
  readonly hasNode: boolean;
  /** Whether it is as somebody wanted it. */
  readonly wanted: boolean;
}

/** What a job can wait for, by the stable code of its status. */
const waits = {
  suspended: { hasNode: false, wanted: true },
  waiting_for_queue: { hasNode: false, wanted: true },
  quota_exceeded: { hasNode: false, wanted: false },
  pod_refused: { hasNode: false, wanted: false },
  name_in_use: { hasNode: false, wanted: false },
  unschedulable: { hasNode: false, wanted: false },
  image_unavailable: { hasNode: true, wanted: false },
  pod_not_starting: { hasNode: true, wanted: false },
} as const satisfies Record<string, WaitKind>;

export interface Wait {
  readonly reason: keyof typeof waits;
  readonly message: string;
}

export interface WaitingStep {
  readonly job: ChildJob;
  /** Those of the job. */
  readonly pods: readonly WorkerPod[];
  readonly target: Target;
  /** Queue of Kueue that the job is admitted by. */
  readonly queue: string | undefined;
  /** What the cluster's events say about pods that are not made or not started. */
  readonly trouble: string;
}

export function isWait(reason: string | undefined): boolean {
  return reason !== undefined && Object.hasOwn(waits, reason);
}

export function kindOfWait({ reason }: Wait): WaitKind {
  return waits[reason];
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
export function findWait(step: WaitingStep): { readonly wait: Wait; readonly since: number } | undefined {
  for (const check of [heldJob, missingPods, unscheduledPod, unstartedPod, troubledPod]) {
    const found = check(step);
    if (found !== undefined) return found;
  }
  return undefined;
}

function heldJob({ job, queue }: WaitingStep) {
  if (!job.suspended) return undefined;
  const wait: Wait =
    queue === undefined
      ? { reason: "suspended", message: `The Job "${job.name}" is suspended` }
      : { reason: "waiting_for_queue", message: `Waiting to be admitted by the queue "${queue}"` };
  return { wait, since: job.createdAt };
}

function missingPods({ job, pods, trouble }: WaitingStep) {
  if (trouble === "" || pods.some(mayRun)) return undefined;
  return { wait: refusalWait(trouble), since: job.createdAt };
}

function unscheduledPod({ pods, target }: WaitingStep) {
  const pod = pods.find(({ unscheduled, deletedBy }) => unscheduled !== undefined && deletedBy === undefined);
  if (pod?.unscheduled === undefined) return undefined;
  const { message, since } = pod.unscheduled;
  return { wait: { reason: "unschedulable", message: unschedulableText(message, target) } as const, since };
}

function unstartedPod({ pods }: WaitingStep) {
  const pod = pods.find(failsToStart);
  if (pod?.waiting === undefined) return undefined;
  return { wait: unstartedWait(pod.waiting), since: begunAt(pod) };
}

function troubledPod({ pods, trouble }: WaitingStep) {
  const pod = pods.find(isBeingPrepared);
  if (trouble === "" || pod === undefined) return undefined;
  return { wait: troubleWait(trouble), since: begunAt(pod) };
}

/** What a container that does not start waits for. */
export function unstartedWait({ reason, message }: { reason: string; message: string }): Wait {
  const said = message === "" ? "" : `: ${message}`;
  return imageReasons.has(reason)
    ? { reason: "image_unavailable", message: `The worker's image cannot be pulled (${reason})${said}` }
    : { reason: "pod_not_starting", message: `The worker's pod cannot be started (${reason})${said}` };
}

/** What a job waits for whose pod cannot be prepared on its node. */
export function troubleWait(trouble: string): Wait {
  return { reason: "pod_not_starting", message: `The worker's pod cannot be started: ${trouble}` };
}

/** What a job waits for whose Job or pods are refused by the cluster. */
export function refusalWait(message: string): Wait {
  const quota = /exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)/.exec(message);
  if (quota === null) return { reason: "pod_refused", message: `The cluster refuses the worker's pod: ${message}` };
  const [, name, requested, used, limited] = quota;
  const figures = `it needs ${requested}, and of ${limited} there are ${used} in use`;
  return { reason: "quota_exceeded", message: `Waiting for the quota "${name}": ${figures}` };
}
