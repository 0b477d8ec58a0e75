import type { JobError } from "../../../../src/contract/errors.ts";
import { maxAttempts } from "../../../../src/contract/limits.ts";
import { workerContainer, workerExit } from "../../../../src/contract/worker.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import { readTerminationMessage } from "../../../../src/resources/read-termination-message.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";
import { deadlineError, hasPassedDeadline } from "./deadline-seconds.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";

type PodFailurePolicy = NonNullable<NonNullable<KubernetesJob["spec"]>["podFailurePolicy"]>;
type PodEnd = Omit<StepEnd, "at">;

/** Pods that replace a failed one. */
export const retries = maxAttempts - 1;

/** Disruptions do not count as attempts. What a second attempt would not change fails the Job. */
export const podFailurePolicy: PodFailurePolicy = {
  rules: [
    { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
    {
      action: "FailJob",
      onExitCodes: {
        containerName: workerContainer,
        operator: "In",
        values: [workerExit.failed, workerExit.killed],
      },
    },
  ],
};

const exitErrors: ReadonlyMap<number, JobError> = new Map([
  [workerExit.cancelled, { code: "worker_killed", message: "The worker was stopped from outside" }],
  [
    workerExit.killed,
    { code: "out_of_memory", message: "The worker ran out of memory and was killed" },
  ],
]);

/** A pod that exceeds its disk would be evicted at every attempt. Other evictions disrupt it. */
export function checkEviction({ pods, now }: ObservedStep): StepEnd | undefined {
  const pod = pods.find(
    ({ phase, reason, disrupted }) => phase === "Failed" && reason === "Evicted" && !disrupted,
  );
  return pod && { error: podKilledError(pod), reportedByWorker: false, at: now };
}

/** Why a failed pod failed. */
export function readPodEnd(pod: WorkerPod): PodEnd {
  if (hasPassedDeadline(pod)) return { error: deadlineError, reportedByWorker: false };
  const { termination } = pod;
  const terminationMessage = readTerminationMessage(termination?.message);
  if (termination?.exitCode === workerExit.failed && terminationMessage?.error) {
    return { error: terminationMessage.error, reportedByWorker: true };
  }
  if (termination === undefined || pod.reason !== "") {
    return { error: podKilledError(pod), reportedByWorker: false };
  }
  if (wasKilledByDeletion(pod)) {
    const error: JobError = { code: "worker_killed", message: "The worker's pod was deleted" };
    return { error, reportedByWorker: false };
  }
  return exitCodeEnd(termination.exitCode, termination.message);
}

/** Without a deletion, only the kernel kills a worker, for lack of memory. */
function wasKilledByDeletion({ termination, deletionDeadline }: WorkerPod): boolean {
  return (
    termination?.exitCode === workerExit.killed &&
    termination.reason !== "OOMKilled" &&
    deletionDeadline !== undefined
  );
}

/** What an exit code means; NaN where there is none. */
export function exitCodeEnd(exitCode: number, message: string): PodEnd {
  const error = exitErrors.get(exitCode);
  if (error !== undefined) return { error, reportedByWorker: false };
  const exit = Number.isNaN(exitCode)
    ? "The worker failed"
    : `The worker exited with code ${exitCode}`;
  const details = message === "" ? "" : `: ${message}`;
  return {
    error: { code: "worker_crashed", message: `${exit}${details}` },
    reportedByWorker: false,
  };
}

function podKilledError({ reason, message }: WorkerPod): JobError {
  const why =
    [reason, message.trim()].filter((part) => part !== "").join(": ") ||
    "the cluster does not say why";
  return { code: "worker_killed", message: `The worker's pod was ended: ${why}` };
}
