import type { JobError } from "../../../../src/contract/errors.ts";
import { workerExit } from "../../../../src/contract/worker.ts";
import { readTerminationMessage } from "../../../../src/resources/read-termination-message.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { warningWait, unstartedWait } from "./find-wait.ts";
import {
  podStartTime,
  isFailingToStart,
  isBeingPrepared,
  type WorkerPod,
} from "../observe/worker-pod.ts";

/** How a step of a job ended. */
export interface StepEnd {
  /** Undefined where it ended well. */
  readonly error: JobError | undefined;
  /** Whether the worker has told the service so itself, or has tried to. */
  readonly reportedByWorker: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface ObservedStep {
  readonly workerJob: WorkerJob;
  /** Those of the job. */
  readonly pods: readonly WorkerPod[];
  readonly now: number;
  readonly warningMessage: string;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}

/** 128 + SIGKILL: nothing else than the kernel for want of memory kills a worker so, unless its pod was being stopped. */
const killedExit = 137;

/** How the step ended; undefined as long as it goes on. */
export function findStepEnd(step: ObservedStep): StepEnd | undefined {
  for (const check of [checkWorkerJobEnd, checkDeadline, checkEviction, checkStartFailure]) {
    const end = check(step);
    if (end !== undefined) return end;
  }
  return undefined;
}

function checkWorkerJobEnd({ workerJob, pods }: ObservedStep): StepEnd | undefined {
  if (workerJob.end === undefined) return undefined;
  const { complete, message, at } = workerJob.end;
  if (complete) return { error: undefined, reportedByWorker: pods.some(hasTerminationMessage), at };
  const failed = pods.filter((pod) => pod.phase === "Failed" && !pod.disrupted);
  const pod =
    failed.find(({ name }) => message.includes(`/${name} `)) ??
    failed.toSorted((one, other) => podEndTime(other) - podEndTime(one))[0];
  const code = Number(/exit code (\d+)/.exec(message)?.[1] ?? NaN);
  if (pod === undefined) return { ...exitCodeEnd(code, message), at };
  return { ...readPodEnd(pod), at };
}

function checkDeadline({ pods, now }: ObservedStep): StepEnd | undefined {
  return pods.some(hasPassedDeadline)
    ? { error: deadlineError, reportedByWorker: false, at: now }
    : undefined;
}

/** A pod that needs more disk than it may have is evicted as soon as it is tried again. Disruptions are marked as such. */
function checkEviction({ pods, now }: ObservedStep): StepEnd | undefined {
  const pod = pods.find(
    ({ phase, reason, disrupted }) => phase === "Failed" && reason === "Evicted" && !disrupted,
  );
  return pod && { error: podKilledError(pod), reportedByWorker: false, at: now };
}

function checkStartFailure({
  pods,
  now,
  warningMessage,
  podStartSeconds,
}: ObservedStep): StepEnd | undefined {
  const late = pods.filter((pod) => podStartTime(pod) + podStartSeconds * 1000 <= now);
  const { waiting } = late.find(isFailingToStart) ?? {};
  const hasWarning = warningMessage !== "" && late.some(isBeingPrepared);
  const wait = waiting
    ? unstartedWait(waiting)
    : hasWarning
      ? warningWait(warningMessage)
      : undefined;
  return (
    wait && {
      error: { code: "pod_start_failed", message: wait.message },
      reportedByWorker: false,
      at: now,
    }
  );
}

function readPodEnd(pod: WorkerPod): Omit<StepEnd, "at"> {
  if (hasPassedDeadline(pod)) return { error: deadlineError, reportedByWorker: false };
  const { termination } = pod;
  const terminationMessage = readTerminationMessage(termination?.message);
  if (termination?.exitCode === workerExit.failed && terminationMessage?.error)
    return { error: terminationMessage.error, reportedByWorker: true };
  if (termination === undefined || pod.reason !== "")
    return { error: podKilledError(pod), reportedByWorker: false };
  if (
    termination.exitCode === killedExit &&
    termination.reason !== "OOMKilled" &&
    pod.deletionDeadline !== undefined
  ) {
    return {
      error: { code: "worker_killed", message: "The worker's pod was deleted" },
      reportedByWorker: false,
    };
  }
  return exitCodeEnd(termination.exitCode, termination.message);
}

function podKilledError({ reason, message }: WorkerPod): JobError {
  const why =
    [reason, message.trim()].filter((part) => part !== "").join(": ") ||
    "the cluster does not say why";
  return { code: "worker_killed", message: `The worker's pod was ended: ${why}` };
}

function exitCodeEnd(exitCode: number, message: string): Omit<StepEnd, "at"> {
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

export const deadlineError: JobError = {
  code: "deadline_exceeded",
  message: "The job was stopped because it took longer than its deadline",
};

const exitErrors: ReadonlyMap<number, JobError> = new Map([
  [workerExit.cancelled, { code: "worker_killed", message: "The worker was stopped from outside" }],
  [killedExit, { code: "out_of_memory", message: "The worker ran out of memory and was killed" }],
]);

function hasPassedDeadline({ phase, reason }: WorkerPod): boolean {
  return phase === "Failed" && reason === "DeadlineExceeded";
}

function podEndTime({ termination, createdAt }: WorkerPod): number {
  return termination?.at ?? createdAt;
}

function hasTerminationMessage({ termination }: WorkerPod): boolean {
  return readTerminationMessage(termination?.message) !== undefined;
}
