import type { JobError } from "../../../src/contract/errors.ts";
import { workerExit } from "../../../src/contract/worker.ts";
import { readTerminationMessage } from "../../../src/kubernetes/read-termination-message.ts";
import type { ChildJob } from "./child-job.ts";
import { troubleWait, unstartedWait } from "./waiting.ts";
import { begunAt, failsToStart, isBeingPrepared, type WorkerPod } from "./worker-pod.ts";

/** How a step of a job ended. */
export interface StepEnd {
  /** Undefined where it ended well. */
  readonly error: JobError | undefined;
  /** Whether the worker has told the service so itself, or has tried to. */
  readonly told: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface EndedStep {
  readonly job: ChildJob;
  /** Those of the job. */
  readonly pods: readonly WorkerPod[];
  readonly now: number;
  readonly trouble: string;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}

/** 128 + SIGKILL: nothing else than the kernel for want of memory kills a worker so, unless its pod was being stopped. */
const killedExit = 137;

/** How the step ended; undefined as long as it goes on. */
export function findEnd(step: EndedStep): StepEnd | undefined {
  for (const check of [jobEnd, deadlinePassed, limitPassed, startFailed]) {
    const end = check(step);
    if (end !== undefined) return end;
  }
  return undefined;
}

function jobEnd({ job, pods }: EndedStep): StepEnd | undefined {
  if (job.end === undefined) return undefined;
  const { complete, message, at } = job.end;
  if (complete) return { error: undefined, told: pods.some(saidLastWords), at };
  const failed = pods.filter((pod) => pod.phase === "Failed" && !pod.disrupted);
  const pod =
    failed.find(({ name }) => message.includes(`/${name} `)) ??
    failed.toSorted((one, other) => endedAt(other) - endedAt(one))[0];
  const code = Number(/exit code (\d+)/.exec(message)?.[1] ?? NaN);
  if (pod === undefined) return { ...exitEnd(code, message), at };
  return { ...podEnd(pod), at };
}

function deadlinePassed({ pods, now }: EndedStep): StepEnd | undefined {
  return pods.some(passedDeadline) ? { error: deadlineError, told: false, at: now } : undefined;
}

/** A pod that needs more disk than it may have is evicted as soon as it is tried again. Disruptions are marked as such. */
function limitPassed({ pods, now }: EndedStep): StepEnd | undefined {
  const pod = pods.find(({ phase, reason, disrupted }) => phase === "Failed" && reason === "Evicted" && !disrupted);
  return pod && { error: endedByCluster(pod), told: false, at: now };
}

function startFailed({ pods, now, trouble, podStartSeconds }: EndedStep): StepEnd | undefined {
  const late = pods.filter((pod) => begunAt(pod) + podStartSeconds * 1000 <= now);
  const { waiting } = late.find(failsToStart) ?? {};
  const isTroubled = trouble !== "" && late.some(isBeingPrepared);
  const wait = waiting ? unstartedWait(waiting) : isTroubled ? troubleWait(trouble) : undefined;
  return wait && { error: { code: "pod_start_failed", message: wait.message }, told: false, at: now };
}

function podEnd(pod: WorkerPod): Omit<StepEnd, "at"> {
  if (passedDeadline(pod)) return { error: deadlineError, told: false };
  const { termination } = pod;
  const words = readTerminationMessage(termination?.message);
  if (termination?.exitCode === workerExit.failed && words?.error) return { error: words.error, told: true };
  if (termination === undefined || pod.reason !== "") return { error: endedByCluster(pod), told: false };
  if (termination.exitCode === killedExit && termination.reason !== "OOMKilled" && pod.deletedBy !== undefined) {
    return { error: { code: "worker_killed", message: "The worker's pod was deleted" }, told: false };
  }
  return exitEnd(termination.exitCode, termination.message);
}

function endedByCluster({ reason, message }: WorkerPod): JobError {
  const why = [reason, message.trim()].filter((part) => part !== "").join(": ") || "the cluster does not say why";
  return { code: "worker_killed", message: `The worker's pod was ended: ${why}` };
}

function exitEnd(exitCode: number, message: string): Omit<StepEnd, "at"> {
  const error = exitErrors.get(exitCode);
  if (error !== undefined) return { error, told: false };
  const exit = Number.isNaN(exitCode) ? "The worker failed" : `The worker exited with code ${exitCode}`;
  const said = message === "" ? "" : `: ${message}`;
  return { error: { code: "worker_crashed", message: `${exit}${said}` }, told: false };
}

export const deadlineError: JobError = {
  code: "deadline_exceeded",
  message: "The job was stopped because it took longer than its deadline",
};

const exitErrors: ReadonlyMap<number, JobError> = new Map([
  [workerExit.cancelled, { code: "worker_killed", message: "The worker was stopped from outside" }],
  [killedExit, { code: "out_of_memory", message: "The worker ran out of memory and was killed" }],
]);

function passedDeadline({ phase, reason }: WorkerPod): boolean {
  return phase === "Failed" && reason === "DeadlineExceeded";
}

function endedAt({ termination, createdAt }: WorkerPod): number {
  return termination?.at ?? createdAt;
}

function saidLastWords({ termination }: WorkerPod): boolean {
  return readTerminationMessage(termination?.message) !== undefined;
}
