import { type Action, combineDecisions, type Decision, noActions } from "./decision.ts";
import { lostPodReason } from "./lost-pods.ts";
import { reportWait } from "./report-wait.ts";
import { transitionPatch } from "./status-patch.ts";
import type { StepWait, Wait, WaitingStep } from "./waiting.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { statusCause, statusReasonTable } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { unendedWorkerJobs } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";

/** Whether `spec.cancel` is set or the resource is being deleted, or either was observed before. */
export function isCancelRequested({ metadata, spec, status }: CompressionJob): boolean {
  return spec.cancel || metadata.deletionTimestamp !== undefined || status.status === "Cancelling";
}

/** Cancels a job: Cancelling while workers stop, Cancelled once none may run. */
export function decideCancel(observed: ObservedState): Decision {
  const stopping = stopWorkers(observed);
  if (stopping === undefined) return completeCancel(observed);
  const patch = transitionPatch(observed, "Cancelling", statusCause("cancel_requested"));
  return combineDecisions(
    patch ? { actions: [{ type: "writeStatus", patch }] } : noActions,
    stopping,
  );
}

function completeCancel(observed: ObservedState): Decision {
  const { statusReason, statusMessage = "" } = observed.resource.status;
  const lost = statusReason === lostPodReason ? `: ${statusMessage}` : "";
  const { reason, message: cancelled } = statusCause("cancelled");
  const message = `${cancelled}${lost}`;
  const patch = transitionPatch(observed, "Cancelled", { reason, message });
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "confirmStopped" },
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: false, reason: "Cancelled", message },
    ],
  };
}

/** Deletes all worker Jobs that have not ended and all pods that may run; undefined without any. */
export function stopWorkers(observed: ObservedState): Decision | undefined {
  const workerJobs = unendedWorkerJobs(observed);
  const pods = observed.pods.filter(mayRun);
  if (workerJobs.length === 0 && pods.length === 0) return undefined;
  return {
    actions: [...workerJobs.flatMap(deleteWorkerJobActions), ...pods.flatMap(deletePodActions)],
  };
}

/** The same for a job whose logs are still to be read: its worker Jobs end, with their pods. */
export function endWorkers(observed: ObservedState): Decision | undefined {
  const stopping = stopWorkers(observed);
  if (stopping === undefined) return undefined;
  const deletions = stopping.actions.filter(({ type }) => type !== "deleteWorkerJob");
  return {
    actions: [...unendedWorkerJobs(observed).flatMap(endWorkerJobActions), ...deletions],
  };
}

/** A Job that is suspended has no deadline, and no logs either. */
function endWorkerJobActions(workerJob: WorkerJob): Action[] {
  if (workerJob.suspended) return deleteWorkerJobActions(workerJob);
  return workerJob.ending || workerJob.deleting
    ? []
    : [{ type: "endWorkerJob", name: workerJob.name }];
}

function deleteWorkerJobActions({ name, uid, deleting }: WorkerJob): Action[] {
  return deleting ? [] : [{ type: "deleteWorkerJob", name, uid }];
}

/** Pods are not left to the garbage collector, which is slow where there are many. */
function deletePodActions({ name, uid, deletionDeadline }: WorkerPod): Action[] {
  return deletionDeadline === undefined ? [{ type: "deletePod", name, uid }] : [];
}

const suspended: Wait = { reason: "suspended", message: statusReasonTable.suspended.message };

/** `spec.suspend` while a step runs: stops its workers. */
export function suspendStep(observed: ObservedState): Decision {
  return combineDecisions(reportSuspended(observed), stopWorkers(observed) ?? noActions);
}

/** `spec.suspend` between two steps: nothing is started. */
export function reportSuspended(observed: ObservedState): Decision {
  return reportWait(observed, suspended);
}

export function checkSuspended(step: WaitingStep): StepWait | undefined {
  const { workerJob } = step;
  const { queue } = workerJob;
  if (!workerJob.suspended) return undefined;
  const wait: Wait =
    queue === undefined
      ? { reason: "suspended", message: `The Job "${workerJob.name}" is suspended` }
      : { reason: "waiting_for_queue", message: queueMessage(step, queue) };
  return { wait, since: workerJob.createdAt };
}

function queueMessage({ hasBegun }: WaitingStep, queue: string): string {
  return `Waiting to be admitted ${hasBegun ? "again " : ""}by the queue "${queue}"`;
}
