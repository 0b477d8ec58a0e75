import type { Client } from "../../src/client/create-client.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import type { FinishedJob } from "./submitted-jobs.ts";

/** How many jobs the REST interface lacks, has twice, or has in another status than Completed. */
export async function countWrongRecords(
  rest: Client,
  finished: readonly FinishedJob[],
): Promise<number> {
  const missing = new Set(finished.map(({ id }) => id));
  let wrong = 0;
  for await (const { id, status } of listRecords(rest)) {
    if (status !== "Completed" || !missing.delete(id)) wrong++;
  }
  return wrong + missing.size;
}

async function* listRecords(rest: Client): AsyncGenerator<Pick<Job, "id" | "status">> {
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: { cursor?: string } = cursor === "" ? {} : { cursor };
    const page = await rest.call("listJobs", { query });
    yield* page.jobs;
    cursor = page.nextCursor;
  }
}
