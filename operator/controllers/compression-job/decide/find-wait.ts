import { firstAnswer } from "./first-answer.ts";
import { checkPodWarning, checkUnstartedPod } from "./pod-start-seconds.ts";
import { checkUnscheduledPod } from "./scheduling.ts";
import { checkSuspended } from "./suspend.ts";
import type { StepWait, WaitingStep } from "./wait.ts";
import { checkMissingPods } from "./worker-job-rejection.ts";

const checks = [
  checkSuspended,
  checkMissingPods,
  checkUnscheduledPod,
  checkUnstartedPod,
  checkPodWarning,
];

/** Undefined where the step waits for nothing. */
export function findWait(step: WaitingStep): StepWait | undefined {
  return firstAnswer(checks, step);
}
