import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isOwnedWorkerJob } from "../observe/owned-worker-jobs.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { combineDecisions, type Decision, requeueAt } from "./decision.ts";
import { failCompressionJob } from "./finish-compression-job.ts";
import { reportWait } from "./report-wait.ts";

/** The garbage collector needs a moment to delete what a deleted object owned. */
const nameConflictRetryMs = 2_000;

/** The Job of another owner with that name. */
export function findNameConflict(observed: ObservedState, name: string): WorkerJob | undefined {
  return observed.workerJobs.find(
    (workerJob) => workerJob.name === name && !isOwnedWorkerJob(workerJob, observed),
  );
}

/** Waits for the Job of an earlier CompressionJob of the same name; any other fails the job. */
export function resolveNameConflict(
  observed: ObservedState,
  { name, controller }: WorkerJob,
): Decision {
  const { resource, now } = observed;
  if (controller?.kind === compressionJobs.kind && controller.name === resource.metadata.name) {
    const owner = "an earlier CompressionJob of this name";
    const message = `Waiting for the Job "${name}" of ${owner} to be deleted`;
    return combineDecisions(
      reportWait(observed, { reason: "name_in_use", message }),
      requeueAt(now + nameConflictRetryMs),
    );
  }
  const owner =
    controller === undefined
      ? "is not this job's"
      : `belongs to ${controller.kind} "${controller.name}"`;
  return failCompressionJob(observed, {
    code: "resource_invalid",
    message: `A Job "${name}", which this job needs for itself, is there and ${owner}`,
  });
}
