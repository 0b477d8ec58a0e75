import type { JobError } from "../../../../src/contract/errors.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs, workerJobPods } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";
import { workedSeconds } from "./worked-seconds.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";

export const deadlineError: JobError = {
  code: "deadline_exceeded",
  message: "The job was stopped because it took longer than its deadline",
};

/** `spec.deadlineSeconds` less the time that pods of earlier steps ran. */
export function remainingDeadlineSeconds(observed: ObservedState): number {
  const { resource, settings } = observed;
  const workMs = ownedWorkerJobs(observed)
    .map((workerJob) => elapsedWorkMs(observed, workerJob))
    .reduce((sum, ms) => sum + ms, 0);
  const deadlineSeconds = resource.spec.deadlineSeconds ?? settings.deadlineSeconds;
  return deadlineSeconds - Math.floor(workMs / 1000);
}

function elapsedWorkMs(observed: ObservedState, workerJob: WorkerJob): number {
  if (workerJob.end === undefined) return 0;
  const pods = workerJobPods(observed, workerJob);
  if (pods.some(({ startedAt }) => startedAt !== undefined)) {
    return workedSeconds(pods, observed.now) * 1000;
  }
  return Math.max(0, workerJob.end.at - (workerJob.startedAt ?? workerJob.createdAt));
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
