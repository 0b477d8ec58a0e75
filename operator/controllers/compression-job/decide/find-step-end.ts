import { readTerminationMessage } from "../../../../src/resources/read-termination-message.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";
import { checkDeadline } from "./deadline-seconds.ts";
import { firstAnswer } from "./waiting.ts";
import {
  checkAttempts,
  checkExceededLimits,
  disruptionsError,
  exitCodeEnd,
  isFailedAttempt,
  podEndTime,
  readPodEnd,
} from "./pod-failure-policy.ts";
import { checkStartFailure } from "./pod-start-seconds.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";

const checks = [
  checkWorkerJobEnd,
  checkDeadline,
  checkExceededLimits,
  checkAttempts,
  checkStartFailure,
];

/** Undefined as long as the step has not ended. */
export function findStepEnd(step: ObservedStep): StepEnd | undefined {
  return firstAnswer(checks, step);
}

function checkWorkerJobEnd({ workerJob, pods }: ObservedStep): StepEnd | undefined {
  if (workerJob.end === undefined) return undefined;
  const { complete, message } = workerJob.end;
  if (complete) return { error: undefined, delivered: pods.some(hasDelivered) };
  const pod = findFailedPod(pods, message);
  if (pod !== undefined) return readPodEnd(pod);
  const disrupted = disruptionsError(pods);
  if (disrupted !== undefined) return { error: disrupted, delivered: false };
  const code = Number(/exit code (\d+)/.exec(message)?.[1] ?? NaN);
  return exitCodeEnd(code, message);
}

/** The pod that the worker Job's message names, else the last one that failed. */
function findFailedPod(pods: readonly WorkerPod[], message: string): WorkerPod | undefined {
  const failed = pods.filter(isFailedAttempt);
  return (
    failed.find(({ name }) => message.includes(`/${name} `)) ??
    failed.toSorted((one, other) => podEndTime(other) - podEndTime(one))[0]
  );
}

function hasDelivered({ termination }: WorkerPod): boolean {
  return readTerminationMessage(termination?.message)?.delivered ?? false;
}
