import type { JobError } from "../../../../src/contract/errors.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs, workerJobPods } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { isWorking, type WorkerPod } from "../observe/worker-pod.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";

export const deadlineError: JobError = {
  code: "deadline_exceeded",
  message: "The job was stopped because it took longer than its deadline",
};

/** `spec.deadlineSeconds`, at most the operator's, less the time that pods of earlier steps ran. */
export function remainingDeadlineSeconds(observed: ObservedState): number {
  const { resource, settings } = observed;
  const workMs = ownedWorkerJobs(observed)
    .map((workerJob) => elapsedWorkMs(observed, workerJob))
    .reduce((sum, ms) => sum + ms, 0);
  const { deadlineSeconds: longest } = settings;
  const { deadlineSeconds = longest } = resource.spec;
  return Math.min(deadlineSeconds, longest) - Math.floor(workMs / 1000);
}

function elapsedWorkMs(observed: ObservedState, workerJob: WorkerJob): number {
  if (workerJob.end === undefined) return 0;
  const pods = workerJobPods(observed, workerJob);
  if (pods.some(({ startedAt }) => startedAt !== undefined)) {
    return workedSeconds(pods, observed.now) * 1000;
  }
  return Math.max(0, workerJob.end.at - (workerJob.startedAt ?? workerJob.createdAt));
}

/** How long at least one of the pods ran, in seconds; the time in between does not count. */
function workedSeconds(pods: readonly WorkerPod[], now: number): number {
  let ms = 0;
  let countedUntil = -Infinity;
  for (const [start, end] of pods.flatMap((pod) => runningTime(pod, now)).toSorted(byStart)) {
    ms += Math.max(0, end - Math.max(start, countedUntil));
    countedUntil = Math.max(countedUntil, end);
  }
  return Math.floor(ms / 1000);
}

type Interval = readonly [start: number, end: number];

function byStart([one]: Interval, [other]: Interval): number {
  return one - other;
}

function runningTime({ startedAt, phase, termination }: WorkerPod, now: number): Interval[] {
  if (startedAt === undefined) return [];
  if (termination !== undefined) return [[startedAt, termination.at]];
  return phase === "Running" ? [[startedAt, now]] : [];
}

/** How much later than the kubelet, whose clock may differ, the operator ends a step's only pod. */
const kubeletSeconds = 300;

/**
 * Time until the operator ends a step: when its pods have had their time together, and where the
 * kubelet has not ended a pod by itself, as on a node that died and that the pod tolerates.
 */
export function secondsUntilEnd({
  pods,
  now,
  deadlineSeconds,
}: Pick<ObservedStep, "pods" | "now" | "deadlineSeconds">): number {
  const left = deadlineSeconds - workedSeconds(pods, now);
  if (pods.length > 1) return left;
  return pods.some(isWorking) ? left + kubeletSeconds : Infinity;
}

export function checkDeadline(step: ObservedStep): StepEnd | undefined {
  return secondsUntilEnd(step) <= 0 || step.pods.some(hasPassedDeadline)
    ? { error: deadlineError, delivered: false }
    : undefined;
}

export function hasPassedDeadline({ phase, reason }: WorkerPod): boolean {
  return phase === "Failed" && reason === "DeadlineExceeded";
}
