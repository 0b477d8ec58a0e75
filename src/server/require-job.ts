import type { Caller } from "../auth/authenticate.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { Records } from "../records/open-records.ts";
import { notFoundError } from "./not-found-error.ts";

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
