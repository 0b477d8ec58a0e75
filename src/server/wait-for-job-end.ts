import type { Caller } from "../auth/authenticate.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import type { ServerContext } from "./server-context.ts";

/** The job when it has ended or the signal is aborted. */
export async function waitForJobEnd(
  { records }: ServerContext,
  caller: Caller,
  { job, signal }: { job: Job; signal: AbortSignal },
): Promise<Job> {
  let latest = job;
  for await (const _ of records.changes.watch(job.id, signal)) {
    latest = (await records.jobs.find(caller.project, job.id)) ?? latest;
    if (isTerminal(latest.status)) break;
  }
  return latest;
}
