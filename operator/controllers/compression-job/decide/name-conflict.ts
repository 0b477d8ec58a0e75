import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isOwnedWorkerJob } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { combineDecisions, type Decision, requeueAt } from "./decision.ts";
import { failCompressionJob } from "./job-end.ts";
import { reportWait } from "./report-wait.ts";

/** The garbage collector needs a moment to delete what a deleted object owned. */
const nameConflictRetryMs = 2_000;

/** A Job with that name that the operator did not create for the resource. */
export function findNameConflict(observed: ObservedState, name: string): WorkerJob | undefined {
  return observed.workerJobs.find(
    (workerJob) => workerJob.name === name && !isOwnedWorkerJob(workerJob, observed),
  );
}

/**
 * Waits for the Job of an earlier CompressionJob of the same name, and deletes one of its own that
 * ended under another release; any other fails the job.
 */
export function resolveNameConflict(observed: ObservedState, workerJob: WorkerJob): Decision {
  const { name, uid } = workerJob;
  if (hasEndedElsewhere(workerJob, observed)) {
    const retry = requeueAt(observed.now + nameConflictRetryMs);
    return combineDecisions({ actions: [{ type: "deleteWorkerJob", name, uid }] }, retry);
  }
  if (isLeftOver(workerJob, observed)) {
    const owner = "an earlier CompressionJob of this name";
    const message = `Waiting for the Job "${name}" of ${owner} to be deleted`;
    return combineDecisions(
      reportWait(observed, { reason: "name_in_use", message }),
      requeueAt(observed.now + nameConflictRetryMs),
    );
  }
  const owner = describeOwner(workerJob, observed);
  return failCompressionJob(observed, {
    code: "resource_invalid",
    message: `A Job "${name}", which this job needs for itself, is there and ${owner}`,
  });
}

/** Whether the Job is the resource's under the account of a release that was here before. */
function hasEndedElsewhere({ controller, end }: WorkerJob, { resource }: ObservedState): boolean {
  const isOwn =
    controller?.kind === compressionJobs.kind && controller.uid === resource.metadata.uid;
  return isOwn && end !== undefined;
}

/** Whether the Job goes with an owner that is gone: of a name there is one resource. */
function isLeftOver({ controller }: WorkerJob, { resource }: ObservedState): boolean {
  const { name, uid } = resource.metadata;
  const { kind } = compressionJobs;
  return controller?.kind === kind && controller.name === name && controller.uid !== uid;
}

function describeOwner(
  { controller, serviceAccount }: WorkerJob,
  { resource, settings }: ObservedState,
): string {
  if (controller === undefined) return "is not this job's";
  if (controller.uid !== resource.metadata.uid) {
    return `belongs to ${controller.kind} "${controller.name}"`;
  }
  const workers = settings.serviceAccount;
  return `runs under the account "${serviceAccount}", not the workers' "${workers}"`;
}
