import { firstAnswer, type StepWait, type WaitingStep } from "./waiting.ts";
import { checkPodWarning, checkUnstartedPod } from "./pod-start-seconds.ts";
import { checkUnscheduledPod } from "./scheduling.ts";
import { checkSuspended } from "./cancel.ts";
import { statusReasonTable } from "../../../../src/contract/jobs/status-reasons.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { checkMissingPods } from "./worker-job-rejection.ts";

const checks = [
  checkSuspended,
  checkMissingPods,
  checkUnscheduledPod,
  checkUnstartedPod,
  checkPodWarning,
  checkFirstPod,
];

/** Undefined where the step waits for nothing. */
export function findWait(step: WaitingStep): StepWait | undefined {
  return firstAnswer(checks, step);
}

/** A job of which nothing was said since its Job was created looks as if no operator served it. */
function checkFirstPod({ workerJob, pods, statusReason }: WaitingStep): StepWait | undefined {
  const reason = "waiting_for_pod";
  if (statusReason !== undefined && statusReason !== reason) return undefined;
  if (pods.some((pod) => pod.phase !== "Pending" || !mayRun(pod))) return undefined;
  return {
    wait: { reason, message: statusReasonTable[reason].message },
    since: workerJob.createdAt,
  };
}
