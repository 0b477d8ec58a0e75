import { invalidTokenError } from "../auth/authenticate.ts";
import { assignedBlobs, reportedBlob } from "../contract/worker-blobs.ts";
import type { WorkerEvent } from "../contract/worker.ts";
import type { AuthenticatedWorker } from "../executors/worker-authentication.ts";
import { validationError } from "./field-errors.ts";
import type { ServerContext } from "./server-context.ts";

/** A worker of the job whose attempt has not ended. */
interface WorkingWorker {
  /** Whether the worker may read a blob: what its assignment names and what its job has stored. */
  canRead(sha256: string): Promise<boolean>;
}

/** @throws ServiceError unauthorized where the attempt or the job has ended */
export async function requireWorkingWorker(
  { records }: Pick<ServerContext, "records">,
  jobId: string,
  { attempt }: AuthenticatedWorker,
): Promise<WorkingWorker> {
  const assignment = await records.workers.findAssignment(jobId, attempt);
  if (assignment === undefined) {
    throw invalidTokenError(`Attempt ${attempt} at job "${jobId}" is over`);
  }
  const assigned = assignedBlobs(assignment);
  return {
    canRead: async (sha256) => assigned.has(sha256) || records.jobBlobs.has(jobId, sha256),
  };
}

/**
 * Refuses events that report blobs which the job's workers have not stored: its callers could
 * download them. Blobs that the worker left in a folder of its own are stored first.
 * @throws ServiceError validation_failed
 */
export async function requireReportedBlobs(
  { records, blobs }: Pick<ServerContext, "records" | "blobs">,
  jobId: string,
  { worker, events }: { worker: AuthenticatedWorker; events: readonly WorkerEvent[] },
): Promise<void> {
  for (const [i, event] of events.entries()) {
    const sha256 = reportedBlob(event);
    if (sha256 === undefined) continue;
    if (!(await records.jobBlobs.has(jobId, sha256)) && (await worker.storeBlob?.(sha256))) {
      await records.jobBlobs.add(jobId, sha256);
    }
    if ((await records.jobBlobs.has(jobId, sha256)) && (await blobs.find(sha256))) continue;
    const message = `No worker of the job has stored a file with SHA-256 ${sha256}`;
    throw validationError([{ pointer: `/events/${i}`, message }]);
  }
}
