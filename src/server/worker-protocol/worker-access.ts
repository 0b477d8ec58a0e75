import { type AuthenticatedWorker, readBearerToken } from "../../auth/authenticate.ts";
import { reportedBlob } from "../../contract/worker-protocol/transfers.ts";
import type { WorkerEvent } from "../../contract/worker-protocol/messages.ts";
import { validationError } from "../http/field-errors.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

/**
 * Refuses events that report blobs which the job's workers have not stored, since its callers could
 * download them, or blobs of another size, which answers announce.
 * @throws ServiceError validation_failed
 */
export async function requireReportedBlobs(
  { records, blobs }: Pick<ServerContext, "records" | "blobs">,
  jobId: string,
  events: readonly WorkerEvent[],
): Promise<void> {
  for (const [i, event] of events.entries()) {
    const reported = reportedBlob(event);
    if (reported === undefined) continue;
    const { sha256, bytes } = reported;
    const isOwn = await records.jobBlobs.has(jobId, sha256);
    const stored = isOwn ? await blobs.find(sha256) : undefined;
    if (stored?.bytes === bytes) continue;
    const message =
      stored === undefined
        ? `No worker of the job has stored a file with SHA-256 ${sha256}`
        : `The file with SHA-256 ${sha256} has ${stored.bytes} bytes, and ${bytes} were reported`;
    throw validationError([{ pointer: `/events/${i}`, message }]);
  }
}

export async function findJobProject(
  { records }: Pick<ServerContext, "records">,
  jobId: string,
): Promise<string> {
  const owner = await records.owners.findOfJob(jobId);
  if (owner === undefined) throw notFoundError("job", jobId);
  return owner.project;
}

/** A worker whose requests are counted. */
export interface CountedWorker extends AuthenticatedWorker {
  /**
   * Counts what costs as much as so many requests.
   * @throws ServiceError too_many_requests
   */
  readonly countRequests: (cost: number) => void;
}

/**
 * The worker that sends a request about the job. It may have been taken over by the model that it
 * runs, so each attempt has a limit of its own.
 * @throws ServiceError unauthorized; too_many_requests; those of WorkerAuthentication
 */
export async function authenticateWorker(
  { executor, quotas }: Pick<ServerContext, "executor" | "quotas">,
  request: Request,
  jobId: string,
): Promise<CountedWorker> {
  const worker = await executor.workers.authenticate(readBearerToken(request), jobId);
  const countRequests = (cost: number) => quotas.workers.take(`${jobId} ${worker.attempt}`, cost);
  countRequests(1);
  return { ...worker, countRequests };
}
