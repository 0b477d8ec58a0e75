import type { z } from "zod";
import type { Client } from "../src/client/create-client.ts";
import type { batchRequest } from "../src/contract/batches/batch.ts";
import type { Job } from "../src/contract/jobs/job.ts";

/** Submits a batch. @returns its id, and its jobs once all have ended */
export async function runBatch(
  client: Client,
  body: z.input<typeof batchRequest>,
): Promise<{ id: string; jobs: Job[] }> {
  const { id, jobs } = await client.call("submitBatch", { body });
  const ended: Job[] = [];
  for (const { id: jobId } of jobs) ended.push(await waitForEnd(client, jobId));
  return { id, jobs: ended };
}

async function waitForEnd(client: Client, id: string): Promise<Job> {
  for (;;) {
    const job = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
    if (job.finishedAt !== null) return job;
  }
}
