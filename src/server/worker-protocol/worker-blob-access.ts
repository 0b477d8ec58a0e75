import { invalidTokenError } from "../../auth/authenticate.ts";
import { assignedBlobs, reportedBlob } from "../../contract/jobs/worker-transfers.ts";
import type { WorkerEvent } from "../../contract/jobs/worker.ts";
import type { AuthenticatedWorker } from "../../executors/worker-authentication.ts";
import { validationError } from "../http/field-errors.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

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
 * @throws ServiceError validation_failed, too_many_bytes
 */
export async function requireReportedBlobs(
  context: Pick<ServerContext, "records" | "blobs" | "quotas">,
  jobId: string,
  { worker, events }: { worker: AuthenticatedWorker; events: readonly WorkerEvent[] },
): Promise<void> {
  const { records, blobs } = context;
  for (const [i, event] of events.entries()) {
    const sha256 = reportedBlob(event);
    if (sha256 === undefined) continue;
    if (!(await records.jobBlobs.has(jobId, sha256))) {
      await takeOverBlob(context, jobId, { worker, sha256 });
    }
    if ((await records.jobBlobs.has(jobId, sha256)) && (await blobs.find(sha256))) continue;
    const message = `No worker of the job has stored a file with SHA-256 ${sha256}`;
    throw validationError([{ pointer: `/events/${i}`, message }]);
  }
}

/** Stores a blob that the worker left in a folder of its own, if any. */
async function takeOverBlob(
  context: Pick<ServerContext, "records" | "quotas">,
  jobId: string,
  { worker, sha256 }: { worker: AuthenticatedWorker; sha256: string },
): Promise<void> {
  if (worker.storeBlob === undefined) return;
  const project = await findJobProject(context, jobId);
  using transfer = await context.quotas.storage.begin(project, { bytes: 0 });
  const blob = await worker.storeBlob(sha256, (source) => transfer.meter(source));
  if (blob) await context.records.jobBlobs.add(jobId, blob);
}

export async function findJobProject(
  { records }: Pick<ServerContext, "records">,
  jobId: string,
): Promise<string> {
  const owner = await records.owners.findOfJob(jobId);
  if (owner === undefined) throw notFoundError("job", jobId);
  return owner.project;
}
