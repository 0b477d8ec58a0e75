import type { JobError } from "../../../../src/contract/errors.ts";
import { maxAttempts, maxDisruptions } from "../../../../src/contract/limits.ts";
import { joinLines } from "../../../../src/contract/text/hidden-characters.ts";
import {
  readTerminationMessage,
  workerContainer,
} from "../../../../src/contract/worker-protocol/messages.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";
import { deadlineError, hasPassedDeadline } from "./deadline.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";

type PodFailurePolicy = NonNullable<NonNullable<KubernetesJob["spec"]>["podFailurePolicy"]>;

/**
 * Pods that replace a failed or disrupted one, as the Job controller counts them, deleted ones too.
 * How many attempts may fail is counted by `checkAttempts`.
 */
export const backoffLimit = maxAttempts - 1 + maxDisruptions;

/** Of a worker that was told to stop, the second before it could notice. */
const stoppedExits: readonly number[] = [workerExit.cancelled, workerExit.terminated];

/**
 * A failure that would repeat fails the Job. A worker that was stopped counts where the cluster
 * says that it disrupted the pod, and not where its Job was suspended, as a queue may do
 * any number of times.
 */
export const podFailurePolicy: PodFailurePolicy = {
  rules: [
    { action: "FailJob", onExitCodes: exitsWith(workerExit.failed) },
    { action: "Count", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
    { action: "Ignore", onExitCodes: exitsWith(...stoppedExits) },
  ],
};

function exitsWith(...values: number[]) {
  return { containerName: workerContainer, operator: "In", values };
}

const stopped: JobError = { code: "worker_killed", message: "The worker was stopped from outside" };

const exitErrors: ReadonlyMap<number, JobError> = new Map([
  ...stoppedExits.map((exitCode) => [exitCode, stopped] as const),
  [workerExit.killed, { code: "worker_killed", message: "The worker was killed from outside" }],
]);

const outOfMemory: JobError = {
  code: "out_of_memory",
  message: "The worker ran out of memory and was killed",
};

const evicted = "Evicted";

/** A pod that exceeds its memory or disk would do so at every attempt. */
export function checkExceededLimits({ pods }: ObservedStep): StepEnd | undefined {
  const pod = pods.find(
    (each) => isOutOfMemory(each) || (isFailedAttempt(each) && each.reason === evicted),
  );
  return pod && readPodEnd(pod);
}

/** Whether a share, or all of the work, has failed as often as it may. */
export function checkAttempts({ pods }: ObservedStep): StepEnd | undefined {
  const failed = pods.filter(isFailedAttempt);
  const last = failed
    .toSorted((one, other) => podEndTime(other) - podEndTime(one))
    .find(({ index }) => failed.filter((pod) => pod.index === index).length >= maxAttempts);
  return last && readPodEnd(last);
}

/** Whether a pod failed and the cluster did not end it, as it ends those of suspended Jobs. */
export function isFailedAttempt(pod: WorkerPod): boolean {
  return pod.phase === "Failed" && pod.disruption === undefined && !wasStoppedByDeletion(pod);
}

/** Whether a worker stopped since its pod was deleted. */
export function wasStoppedByDeletion({ termination, deletionDeadline }: WorkerPod): boolean {
  return (
    termination !== undefined &&
    stoppedExits.includes(termination.exitCode) &&
    deletionDeadline !== undefined
  );
}

export function podEndTime({ termination, createdAt }: WorkerPod): number {
  return termination?.at ?? createdAt;
}

/** For a Job whose pods the cluster ended more often than it may. */
export function disruptionsError(pods: readonly WorkerPod[]): JobError | undefined {
  const reasons = pods.flatMap(({ disruption }) => disruption ?? []);
  if (reasons.length === 0) return undefined;
  const counts = Object.entries(Object.groupBy(reasons, (reason) => reason));
  const texts = counts.map(([reason, all = []]) => `${reason} ${all.length}`);
  const message = `The cluster ended the worker's pods too often: ${texts.join(", ")}`;
  return { code: "worker_killed", message };
}

function isOutOfMemory({ phase, termination }: WorkerPod): boolean {
  return phase === "Failed" && termination?.reason === "OOMKilled";
}

/** Why a failed pod failed. */
export function readPodEnd(pod: WorkerPod): StepEnd {
  if (hasPassedDeadline(pod)) return { error: deadlineError, delivered: false };
  const { termination } = pod;
  const terminationMessage = readTerminationMessage(termination?.message);
  if (termination?.exitCode === workerExit.failed && terminationMessage?.error) {
    const { error, delivered = false } = terminationMessage;
    return { error, delivered };
  }
  if (isOutOfMemory(pod)) return { error: outOfMemory, delivered: false };
  if (termination === undefined || pod.reason !== "") {
    return { error: podKilledError(pod), delivered: false };
  }
  if (wasKilledByDeletion(pod)) {
    const error: JobError = { code: "worker_killed", message: "The worker's pod was deleted" };
    return { error, delivered: false };
  }
  return exitCodeEnd(termination.exitCode, termination.message);
}

function wasKilledByDeletion({ termination, deletionDeadline }: WorkerPod): boolean {
  return termination?.exitCode === workerExit.killed && deletionDeadline !== undefined;
}

/** What an exit code means; NaN if there is none. */
export function exitCodeEnd(exitCode: number, message: string): StepEnd {
  const error = exitErrors.get(exitCode);
  if (error !== undefined) return { error, delivered: false };
  const exit = Number.isNaN(exitCode)
    ? "The worker failed"
    : `The worker exited with code ${exitCode}`;
  // Native code of a model may have written it.
  const words = joinLines(message).trim();
  const details = words === "" ? "" : `: ${words}`;
  return {
    error: { code: "worker_crashed", message: `${exit}${details}` },
    delivered: false,
  };
}

function podKilledError({ reason, message }: WorkerPod): JobError {
  const words = message.trim();
  // The kubelet's words; those of a node that is short of something begin with the node.
  if (reason === evicted && words.includes("exceed")) {
    return { code: "out_of_disk", message: `The worker used more disk than it may: ${words}` };
  }
  const why =
    [reason, words].filter((part) => part !== "").join(": ") || "the cluster does not say why";
  return { code: "worker_killed", message: `The worker's pod was ended: ${why}` };
}
