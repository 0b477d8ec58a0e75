import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { combineDecisions, type Decision, requeueAt } from "./decision.ts";
import { failCompressionJob } from "./job-end.ts";
import { reportWait } from "./report-wait.ts";
import type { StepWait, Wait, WaitingStep } from "./waiting.ts";

/** The cluster may accept later what it rejected. */
const rejectionRetryMs = 30_000;

const quotaPattern = /exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)/;

/** Fails a job whose worker Job would always be rejected; others wait. */
export function decideRejection(
  observed: ObservedState,
  { message, final }: NonNullable<ObservedState["workerJobRejection"]>,
): Decision {
  if (final) {
    return failCompressionJob(observed, {
      code: "pod_start_failed",
      message: `The cluster refuses the Job: ${message}`,
    });
  }
  return combineDecisions(
    reportWait(observed, rejectionWait(message)),
    requeueAt(observed.now + rejectionRetryMs),
  );
}

export function checkMissingPods({
  workerJob,
  pods,
  warningMessage,
}: WaitingStep): StepWait | undefined {
  if (warningMessage === "" || pods.some(mayRun)) return undefined;
  return { wait: rejectionWait(warningMessage), since: workerJob.createdAt };
}

/** For a job whose worker Job or pods the cluster rejects. */
function rejectionWait(message: string): Wait {
  const quota = quotaPattern.exec(message);
  if (quota === null) {
    return { reason: "pod_refused", message: `The cluster refuses the worker's pod: ${message}` };
  }
  const [, name, requested, used, limited] = quota;
  const figures = `it needs ${requested}, and of ${limited} there are ${used} in use`;
  return { reason: "quota_exceeded", message: `Waiting for the quota "${name}": ${figures}` };
}
