import type { JobError } from "../../../../src/contract/errors.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs, workerJobPods } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";
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
export function workedSeconds(pods: readonly WorkerPod[], now: number): number {
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

/** The kubelet ends a pod whose time is up; the operator, a step whose pods had it together. */
export function checkDeadline({ pods, now, deadlineSeconds }: ObservedStep): StepEnd | undefined {
  const isOver = pods.length > 1 && workedSeconds(pods, now) >= deadlineSeconds;
  return isOver || pods.some(hasPassedDeadline)
    ? { error: deadlineError, delivered: false }
    : undefined;
}

export function hasPassedDeadline({ phase, reason }: WorkerPod): boolean {
  return phase === "Failed" && reason === "DeadlineExceeded";
}
