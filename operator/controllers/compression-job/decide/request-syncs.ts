import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs } from "../observe/owned-worker-jobs.ts";
import { currentWarningMessage } from "../observe/step-warning.ts";
import { workerJobPods } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { podEndTime } from "./pod-failure-policy.ts";

/** How long a worker Job that has not ended may be without a pod that runs or waits. */
const syncRequestSeconds = 60;

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
  const podEnds = workerJobPods(observed, workerJob).map(podEndTime);
  const idleSince = Math.max(createdAt, startedAt, syncRequestedAt, ...podEnds);
  const { now: at } = observed;
  if (at < idleSince + syncRequestSeconds * 1000) {
    return requeueAt(idleSince + syncRequestSeconds * 1000);
  }
  const reason: EventReason = "SyncRequested";
  const message = `Nothing happened to the Job "${name}" for ${syncRequestSeconds} s`;
  return {
    actions: [
      { type: "requestSync", name, at },
      { type: "recordEvent", warning: true, reason, message },
    ],
  };
}
