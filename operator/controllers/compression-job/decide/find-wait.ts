import { firstAnswer, type StepWait, type WaitingStep } from "./waiting.ts";
import { checkPodWarning, checkUnstartedPod } from "./pod-start-seconds.ts";
import { checkUnscheduledPod } from "./scheduling.ts";
import { checkSuspended } from "./cancel.ts";
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
