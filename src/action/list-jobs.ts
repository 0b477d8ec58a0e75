import type { Client } from "../client/create-client.ts";
import type { Job } from "../contract/job.ts";
import type { JobQuery } from "../contract/page.ts";
import { limits } from "../contract/limits.ts";

interface Filter {
  readonly batch?: string;
  readonly label?: string[];
  readonly status?: JobQuery["status"];
}

/** All jobs that a filter lets through, newest first. */
export async function listJobs(
  client: Client,
  filter: Filter,
  signal?: AbortSignal,
): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let cursor: string | undefined; ;) {
    const query = {
      ...filter,
      limit: String(limits.pageMax),
      ...(cursor !== undefined && { cursor }),
    };
    const page = await client.call("listJobs", { query }, signal && { signal });
    jobs.push(...page.jobs);
    if (page.nextCursor === null) return jobs;
    cursor = page.nextCursor;
  }
}
