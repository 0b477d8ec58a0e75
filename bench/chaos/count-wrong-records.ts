import type { Client } from "../../src/client/create-client.ts";
import type { FinishedJob } from "./submitted-jobs.ts";

/** How many jobs the REST interface lacks, has twice, or has in another status than Completed. */
export async function countWrongRecords(
  rest: Client,
  finished: readonly FinishedJob[],
): Promise<number> {
  const missing = new Set(finished.map(({ id }) => id));
  let wrong = 0;
  for await (const { jobs } of rest.listPages("listJobSummaries", {})) {
    for (const { id, status } of jobs) {
      if (status !== "Completed" || !missing.delete(id)) wrong++;
    }
  }
  return wrong + missing.size;
}
