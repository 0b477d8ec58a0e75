import { checkSuspended, suspendStep } from "./cancel.ts";
import { remainingDeadlineSeconds, secondsUntilEnd } from "./deadline.ts";
import { combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { podEndTime } from "./pod-failure-policy.ts";
import { checkPodWarning, checkUnstartedPod, podStartDeadline } from "./pod-start.ts";
import { reportWait } from "./report-wait.ts";
import { areAllScheduled, checkHeldBackPod, checkUnscheduledPod } from "./scheduling.ts";
import { firstAnswer, type StepWait, type WaitingStep } from "./waiting.ts";
import { checkMissingPods } from "./worker-job-rejection.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import { statusReasonTable } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs, workerJobPods } from "../observe/steps.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { parseOptionalTime, type WorkerJob } from "../observe/worker-job.ts";
import { isFailingToStart, isWorking, mayRun, type WorkerPod } from "../observe/worker-pod.ts";

/** A shorter wait is not worth a write. */
const minWaitMs = 3_000;

interface StepInProgress {
  readonly workerJob: WorkerJob;
  /** Those of the worker Job. */
  readonly pods: readonly WorkerPod[];
}

/** Reports what a started step waits for. */
export function monitorStep(
  observed: ObservedState,
  { workerJob, pods }: StepInProgress,
): Decision {
  const { resource, targets, settings } = observed;
  if (resource.spec.suspend) return suspendStep(observed);
  const target = targets.find(({ name }) => name === resource.spec.target);
  if (workerJob.deleting || target === undefined) return noActions;
  const step: WaitingStep = {
    workerJob,
    pods,
    now: observed.now,
    target,
    statusReason: resource.status.statusReason,
    hasBegun: resource.status.startedAt !== undefined,
    lostAt: parseOptionalTime(resource.status.attempts?.at),
    warningMessage: currentWarningMessage(observed),
  };
  return combineDecisions(
    reportStep(observed, pods, firstAnswer(waitChecks, step)),
    ...pods
      .filter(isFailingToStart)
      .map((pod) => requeueAt(podStartDeadline(pod, settings.podStartSeconds))),
    requeueForWarning(observed),
    requeueForSilence(observed, pods),
    requeueForDeadline(observed, pods),
  );
}

/** The first that finds something says what the step waits for. */
const waitChecks = [
  checkSuspended,
  checkMissingPods,
  checkUnscheduledPod,
  checkHeldBackPod,
  checkUnstartedPod,
  checkPodWarning,
  checkNextPod,
  checkFirstPod,
  checkSilentWorker,
];

/** After a pod is lost, Kubernetes waits before it starts another, longer each time. */
function checkNextPod({ workerJob, pods, lostAt }: WaitingStep): StepWait | undefined {
  if (lostAt === undefined || lostAt < workerJob.createdAt) return undefined;
  const done = pods.filter(({ phase }) => phase === "Succeeded").length;
  const needed = workerJob.step === "optimize" ? workerJob.parallelism : 1;
  if (done >= needed || pods.some(isWorking)) return undefined;
  const message = `${statusReasonTable.waiting_for_pod.message} again`;
  const since = Math.max(lostAt, workerJob.startedAt ?? lostAt, ...pods.map(podEndTime));
  return { wait: { reason: "waiting_for_pod", message }, since };
}

/** A job without a message since its Job was created looks as if no operator served it. */
function checkFirstPod({ workerJob, pods, statusReason }: WaitingStep): StepWait | undefined {
  const reason = "waiting_for_pod";
  if (statusReason !== undefined && statusReason !== reason) return undefined;
  if (pods.some((pod) => pod.phase !== "Pending" || !mayRun(pod))) return undefined;
  return {
    wait: { reason, message: statusReasonTable[reason].message },
    since: workerJob.createdAt,
  };
}

/** How long a worker that runs may take to report that it works. */
const silenceMs = 30_000;

/** A worker that does not reach the service waits for it, as long as its deadline allows. */
function checkSilentWorker({ pods, now }: WaitingStep): StepWait | undefined {
  const reason = "worker_silent";
  const since = Math.min(...silentSince(pods));
  if (since + silenceMs > now) return undefined;
  return { wait: { reason, message: statusReasonTable[reason].message }, since };
}

function silentSince(pods: readonly WorkerPod[]): number[] {
  return pods.filter(mayRun).flatMap(({ runningSince }) => runningSince ?? []);
}

function requeueForSilence({ now }: ObservedState, pods: readonly WorkerPod[]): Decision {
  const times = silentSince(pods).map((since) => since + silenceMs);
  return combineDecisions(...times.filter((time) => time > now).map(requeueAt));
}

function reportStep(
  observed: ObservedState,
  pods: readonly WorkerPod[],
  waiting: StepWait | undefined,
): Decision {
  if (waiting === undefined) {
    return areAllScheduled(pods) ? reportWait(observed, undefined) : noActions;
  }
  const reportAt = waiting.since + minWaitMs;
  return reportAt > observed.now ? requeueAt(reportAt) : reportWait(observed, waiting.wait);
}

function requeueForDeadline(observed: ObservedState, pods: readonly WorkerPod[]): Decision {
  const { now } = observed;
  const deadlineSeconds = remainingDeadlineSeconds(observed);
  const left = secondsUntilEnd({ pods, now, deadlineSeconds });
  return left === Infinity ? noActions : requeueAt(now + Math.max(1, left) * 1000);
}

/** The cluster's warning starts or stops to count then. */
function requeueForWarning({ stepWarning, now }: ObservedState): Decision {
  const { from = 0, until = 0 } = stepWarning ?? {};
  const times = [from, until].filter((time) => time > now);
  return combineDecisions(...times.map(requeueAt));
}

/** How long a worker Job that has not ended may be without a pod that runs or waits. */
const syncRequestSeconds = 60;
/** How long Kubernetes' Job controller waits after a lost pod, doubled with each, and at most. */
const backOffSeconds = { first: 10, longest: 600 };

/**
 * Changes worker Jobs for which nothing happens: Kubernetes' Job controller skips a Job of which it
 * has not seen its own last write, and may not come back to it until the Job changes. A warning
 * shows that it did: pods are refused.
 */
export function requestSyncs(observed: ObservedState): Decision {
  if (currentWarningMessage(observed) !== "") return noActions;
  const idle = ownedWorkerJobs(observed).filter(
    (workerJob) =>
      workerJob.end === undefined &&
      !workerJob.suspended &&
      !workerJob.deleting &&
      !workerJobPods(observed, workerJob).some(mayRun),
  );
  return combineDecisions(...idle.map((workerJob) => requestSyncAfter(observed, workerJob)));
}

function requestSyncAfter(observed: ObservedState, workerJob: WorkerJob): Decision {
  const { name, createdAt, startedAt = createdAt, syncRequestedAt = createdAt } = workerJob;
  const { now: at, resource } = observed;
  const podEnds = workerJobPods(observed, workerJob).map(podEndTime);
  // Of a pod that is gone, as after an eviction.
  const lostAt = parseOptionalTime(resource.status.attempts?.at) ?? createdAt;
  const idleSince = Math.max(createdAt, startedAt, syncRequestedAt, lostAt, ...podEnds);
  const idleSeconds = syncRequestSeconds + jobBackOffSeconds(resource.status.attempts?.lost ?? 0);
  const dueAt = idleSince + idleSeconds * 1000;
  if (at < dueAt) return requeueAt(dueAt);
  const reason: EventReason = "SyncRequested";
  const message = `Nothing happened to the Job "${name}" for ${idleSeconds} s`;
  return {
    actions: [
      { type: "requestSync", name, at },
      { type: "recordEvent", warning: true, reason, message },
    ],
  };
}

function jobBackOffSeconds(lost: number): number {
  const { first, longest } = backOffSeconds;
  return lost === 0 ? 0 : Math.min(longest, first * 2 ** (lost - 1));
}
