import { workerJobName, type JobStep } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { deadlineError, remainingDeadlineSeconds } from "./deadline-seconds.ts";
import { type Decision, requeueAt } from "./decision.ts";
import { addFinalizer } from "./finalizer.ts";
import { failCompressionJob } from "./finish-compression-job.ts";
import { findNameConflict, resolveNameConflict } from "./name-conflict.ts";
import type { WorkPlan } from "./plan-work.ts";
import { reportSuspended } from "./suspend.ts";
import { workerJobManifest } from "./worker-job-manifest.ts";
import { decideRejection } from "./worker-job-rejection.ts";

/** Pods without their worker Job are deleted soon, or the cache of worker Jobs is behind. */
const orphanRetryMs = 2_000;

/** Creates the worker Job of a step, unless a pod of an earlier one may run. */
export function startStep(observed: ObservedState, plan: WorkPlan, step: JobStep): Decision {
  const { resource, jobId, settings, workerJobRejection, now } = observed;
  if (observed.pods.some(mayRun)) return requeueAt(now + orphanRetryMs);
  if (resource.spec.suspend) return reportSuspended(observed);
  const other = findNameConflict(observed, workerJobName(resource.metadata.name, step));
  if (other !== undefined) return resolveNameConflict(observed, other);
  const deadlineSeconds = remainingDeadlineSeconds(observed);
  if (deadlineSeconds < 1) return failCompressionJob(observed, deadlineError);
  if (workerJobRejection) return decideRejection(observed, workerJobRejection);
  const manifest = workerJobManifest({ ...plan, resource, jobId, step, deadlineSeconds }, settings);
  const message = `Created the Job "${manifest.metadata?.name ?? ""}"`;
  return {
    actions: [
      ...addFinalizer(observed),
      { type: "createWorkerJob", manifest },
      { type: "recordEvent", warning: false, reason: "Started", message },
    ],
  };
}
