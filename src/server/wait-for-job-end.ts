import { limits } from "../contract/limits.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { Caller } from "../auth/authenticate.ts";
import type { ServerContext } from "./server-context.ts";

/** Seconds that `Prefer: wait=N` asks for, at most those that the service waits; undefined where it does not ask. */
export function readPreferredWait(prefer: string | undefined): number | undefined {
  const [, seconds] = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer ?? "") ?? [];
  return seconds === undefined ? undefined : Math.min(Number(seconds), limits.preferWaitSeconds);
}

/** Waits until the job has ended or the signal is aborted. */
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
