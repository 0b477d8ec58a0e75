import { checkDeadline, deadlineError } from "./deadline.ts";
import { type Action, type Decision, noActions } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import {
  checkAttempts,
  checkExceededLimits,
  disruptionsError,
  exitCodeEnd,
  isFailedAttempt,
  podEndTime,
  readPodEnd,
} from "./pod-failure-policy.ts";
import { checkStartFailure } from "./pod-start.ts";
import { statusPatch, transitionPatch } from "./status-patch.ts";
import type { ObservedStep, StepEnd } from "./step-end.ts";
import { firstAnswer } from "./waiting.ts";
import type {
  CompressionJobStatus,
  JobReport,
} from "../../../../src/contract/custom-resources/compression-job.ts";
import type { JobError } from "../../../../src/contract/errors.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import { isTerminal, leadsTo } from "../../../../src/contract/jobs/status.ts";
import { hasSeenInterruption } from "../../../../src/resources/interruption.ts";
import { readTerminationMessage } from "../../../../src/contract/worker-protocol/messages.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isWorking, type WorkerPod } from "../observe/worker-pod.ts";

/**
 * Takes over the end of a job that the service has recorded, as the worker reported it or since the
 * job cannot be done. Undefined if there is none.
 */
export function endAsReported(observed: ObservedState): Decision | undefined {
  const transitions = listNewTransitions(observed);
  const isEnd = transitions.some(({ status }) => isTerminal(status));
  return isEnd ? takeOver(observed, transitions) : undefined;
}

/**
 * Takes over what the worker reported while one works. After the pods of a job were taken away, the
 * report is about those until the service knows of it or a new pod starts.
 */
export function followReport(
  observed: ObservedState,
  pods: readonly WorkerPod[],
): Decision | undefined {
  const { status } = observed.resource;
  if (!pods.some(isWorking) || !hasSeenInterruption(status, status.report?.transitions))
    return undefined;
  return takeOver(observed, listNewTransitions(observed));
}

export function hasReportedEnd({ transitions = [] }: JobReport = {}): boolean {
  return transitions.some(({ status }) => isTerminal(status));
}

type Transition = NonNullable<CompressionJobStatus["transitions"]>[number];

/** Those of the report to which the table leads on from the status, one after the other. */
function listNewTransitions({ resource }: ObservedState): Transition[] {
  const { spec, status } = resource;
  const reported = status.report?.transitions ?? [];
  const waited = reported.findLastIndex((transition) => transition.status === "Pending");
  let current = status.status;
  return reported.slice(waited + 1).filter((transition) => {
    const isNext = isReported(transition) && leadsTo(spec.kind, current, transition.status);
    if (isNext) current = transition.status;
    return isNext;
  });
}

/** A cancellation is asked for in the spec; whether it is complete, pods say. */
function isReported({ status }: Transition): boolean {
  return status !== "Cancelling" && status !== "Cancelled";
}

/** Success is reported when all is recorded; a job that failed without a pod is not waited for. */
function failureEvents({ status }: Transition, error: JobError | undefined): Action[] {
  if (status !== "Failed" || error === undefined) return [];
  const { code, message } = error;
  return [{ type: "recordEvent", warning: true, reason: pascalCase(code), message }];
}

function takeOver(observed: ObservedState, transitions: Transition[]): Decision | undefined {
  const last = transitions.at(-1);
  if (last === undefined) return undefined;
  const { startedAt, error } = observed.resource.status.report ?? {};
  const patch = statusPatch(observed, last, { startedAt, error }, transitions.slice(0, -1));
  return { actions: [{ type: "writeStatus", patch }, ...failureEvents(last, error)] };
}

const endChecks = [
  checkWorkerJobEnd,
  checkDeadline,
  checkExceededLimits,
  checkAttempts,
  checkStartFailure,
];

/** Undefined as long as the step has not ended. */
export function findStepEnd(step: ObservedStep): StepEnd | undefined {
  return firstAnswer(endChecks, step);
}

function checkWorkerJobEnd({ workerJob, pods }: ObservedStep): StepEnd | undefined {
  if (workerJob.end === undefined) return undefined;
  const { complete, reason, message } = workerJob.end;
  const delivered = pods.some(hasDelivered);
  if (complete) return { error: undefined, delivered };
  // A policy of the cluster may give Jobs a deadline.
  if (reason === "DeadlineExceeded") return { error: deadlineError, delivered };
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

const completed: StatusCause = { reason: "completed", message: "The worker has done its work" };

/**
 * Ends a job as its last step ended. A result that the service has confirmed comes with its report,
 * which has the details: `endAsReported` takes it.
 */
export function finishCompressionJob(
  observed: ObservedState,
  { error, delivered }: StepEnd,
): Decision {
  if (delivered) return noActions;
  if (error !== undefined) return failCompressionJob(observed, error);
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, "Completed", completed, { startedAt });
  return patch ? { actions: [{ type: "writeStatus", patch }] } : noActions;
}

/** Ends a job that cannot be done, or whose work failed. */
export function failCompressionJob(observed: ObservedState, error: JobError): Decision {
  const { code: reason, message } = error;
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, "Failed", { reason, message }, { error, startedAt });
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: true, reason: pascalCase(reason), message },
    ],
  };
}

function earliestPodStart({ pods }: ObservedState): string | undefined {
  const starts = pods.flatMap((pod) => pod.startedAt ?? []);
  return starts.length > 0 ? new Date(Math.min(...starts)).toISOString() : undefined;
}
