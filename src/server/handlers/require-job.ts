import type { Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { Records } from "../../records/open-records.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

/** @throws ServiceError not_found where the caller's project has no such job */
export async function requireJob(
  { jobs }: Pick<Records, "jobs">,
  caller: Caller,
  id: string,
): Promise<Job> {
  const job = await jobs.find(caller.project, id);
  if (!job) throw notFoundError("job", id);
  return job;
}

/**
 * Refuses to delete jobs whose custom resources would wait for ever for their records.
 * @throws ServiceError job_unfinished
 */
export function requireRecorded(
  { executor }: Pick<ServerContext, "executor">,
  jobIds: readonly string[],
): void {
  const waiting = jobIds.find((id) => executor.awaitsRecord?.(id));
  if (waiting === undefined) return;
  const message = `Job "${waiting}" cannot be deleted yet: its resource is not recorded`;
  throw new ServiceError("job_unfinished", message, { headers: { "retry-after": "5" } });
}
