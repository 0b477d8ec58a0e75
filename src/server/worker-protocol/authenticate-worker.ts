import { readBearerToken } from "../../auth/authenticate.ts";
import type { AuthenticatedWorker } from "../../executors/worker-authentication.ts";
import type { ServerContext } from "../http/server-context.ts";

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
