import type { ServiceClient } from "./service-client.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { JobQuery } from "../contract/jobs/page.ts";
import { limits } from "../contract/limits.ts";

interface JobFilter {
  readonly batch?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly status?: JobQuery["status"];
}

/** All pages of the jobs that match the filter, newest first. */
export async function listJobs(
  client: ServiceClient,
  { labels, ...filter }: JobFilter,
  signal?: AbortSignal,
): Promise<Job[]> {
  const label = labels && Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const jobs: Job[] = [];
  for (let cursor: string | undefined; ;) {
    const query = { ...filter, label, limit: String(limits.pageMax), cursor };
    const page = await client.call("listJobs", { query }, signal && { signal });
    jobs.push(...page.jobs.filter((job) => "recipe" in job));
    if (page.nextCursor === null) return jobs;
    cursor = page.nextCursor;
  }
}
