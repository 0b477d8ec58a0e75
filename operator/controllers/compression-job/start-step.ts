import { recordFinalizer } from "../../../src/contract/resource-labels.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { workerJobName, type JobStep } from "../../../src/resources/job-identity.ts";
import { combineDecisions, type Decision, requeueAt } from "./decision.ts";
import type { WorkerJob } from "./worker-job.ts";
import { finishCompressionJob } from "./finish-compression-job.ts";
import { suspendedWait } from "./monitor-step.ts";
import { workerJobManifest } from "./worker-job-manifest.ts";
import type { WorkPlan } from "./plan-work.ts";
import { workerJobPods } from "./steps.ts";
import { reportWait } from "./report-wait.ts";
import { rejectionWait } from "./find-wait.ts";
import { deadlineError } from "./find-step-end.ts";
import { mayRun } from "./worker-pod.ts";
import { ownedWorkerJobs, isOwnedWorkerJob, type ObservedState } from "./observed-state.ts";

/** What the cluster refused may be allowed the next time. */
const rejectionRetryMs = 30_000;
/** The garbage collector needs a moment to delete what a deleted object owned. */
const nameConflictRetryMs = 2_000;
const orphanRetryMs = 2_000;

/** Makes the Job of a step, if nothing of an earlier one runs any more. */
export function startStep(observed: ObservedState, plan: WorkPlan, step: JobStep): Decision {
  const { resource, settings, workerJobRejection, now } = observed;
  // Their Job is gone, and they follow it; or it is there, and the cache of Jobs lags behind.
  if (observed.pods.some(mayRun)) return requeueAt(now + orphanRetryMs);
  if (resource.spec.suspend) return reportWait(observed, suspendedWait);
  const name = workerJobName(resource.metadata.name, step);
  const other = observed.workerJobs.find(
    (workerJob) => workerJob.name === name && !isOwnedWorkerJob(workerJob, resource),
  );
  if (other !== undefined) return resolveNameConflict(observed, other);
  const deadlineSeconds =
    (resource.spec.deadlineSeconds ?? settings.deadlineSeconds) - elapsedWorkSeconds(observed);
  if (deadlineSeconds < 1)
    return finishCompressionJob(observed, {
      error: deadlineError,
      reportedByWorker: false,
      at: now,
    });
  if (workerJobRejection?.final) {
    const message = `The cluster refuses the Job: ${workerJobRejection.message}`;
    return finishCompressionJob(observed, {
      error: { code: "pod_start_failed", message },
      reportedByWorker: false,
      at: now,
    });
  }
  if (workerJobRejection)
    return combineDecisions(
      reportWait(observed, rejectionWait(workerJobRejection.message)),
      requeueAt(now + rejectionRetryMs),
    );
  const hasFinalizer = resource.metadata.finalizers?.includes(recordFinalizer);
  const manifest = workerJobManifest({ ...plan, resource, step, deadlineSeconds }, settings);
  return {
    actions: [
      ...(hasFinalizer ? [] : [{ type: "setFinalizer", present: true } as const]),
      { type: "createWorkerJob", manifest },
    ],
  };
}

/** A Job of an earlier CompressionJob of the same name goes with its owner; any other stays where it is. */
function resolveNameConflict(observed: ObservedState, { name, controller }: WorkerJob): Decision {
  const { resource, now } = observed;
  if (controller?.kind === compressionJobs.kind && controller.name === resource.metadata.name) {
    const message = `Waiting for the Job "${name}" of an earlier CompressionJob of this name to be deleted`;
    return combineDecisions(
      reportWait(observed, { reason: "name_in_use", message }),
      requeueAt(now + nameConflictRetryMs),
    );
  }
  const owner =
    controller === undefined
      ? "is not this job's"
      : `belongs to ${controller.kind} "${controller.name}"`;
  const message = `A Job "${name}", which this job needs for itself, is there and ${owner}`;
  return finishCompressionJob(observed, {
    error: { code: "resource_invalid", message },
    reportedByWorker: false,
    at: now,
  });
}

/** Seconds that the steps before took. */
function elapsedWorkSeconds(observed: ObservedState): number {
  const worked = ownedWorkerJobs(observed).map((workerJob) => {
    const starts = workerJobPods(observed, workerJob).flatMap((pod) => pod.startedAt ?? []);
    const start =
      starts.length > 0 ? Math.min(...starts) : (workerJob.startedAt ?? workerJob.createdAt);
    return workerJob.end === undefined ? 0 : Math.max(0, workerJob.end.at - start);
  });
  return Math.floor(worked.reduce((sum, ms) => sum + ms, 0) / 1000);
}
