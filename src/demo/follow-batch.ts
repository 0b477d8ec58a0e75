import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/create-client.ts";
import type { Batch } from "../contract/batch.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { Display } from "./display.ts";
import type { JobProgress } from "./status-block.ts";

const pollMs = 300;

/** Shows all jobs' output and progress until they have ended, and gives the jobs in the order of the batch. */
export async function followBatch(
  client: Client,
  batch: Batch,
  display: Display,
  signal: AbortSignal,
): Promise<Job[]> {
  const ended = new AbortController();
  const following = AbortSignal.any([signal, ended.signal]);
  const width = Math.max(...batch.jobs.map((job) => jobLabel(job).length));
  const logs = batch.jobs.map(async (job) => {
    const label = jobLabel(job).padEnd(width);
    for await (const line of client.followLogs(job.id, { signal: following }))
      display.print(`${label} | ${line.text}`);
  });
  try {
    await Promise.race([Promise.all(logs), showProgress(client, batch, display, following)]);
  } finally {
    ended.abort();
  }
  return fetchJobs(client, batch);
}

/** Cancels a batch and waits until none of its processes runs. */
export async function cancelBatch(client: Client, batch: Pick<Batch, "id">): Promise<void> {
  const limit = AbortSignal.timeout(10_000);
  await client.call("cancelBatch", { params: { id: batch.id } }, { signal: limit });
  for (;;) {
    const { status } = await client.call(
      "getBatch",
      { params: { id: batch.id } },
      { signal: limit },
    );
    if (status === "Completed" || status === "Failed" || status === "Cancelled") return;
    await delay(pollMs, undefined, { signal: limit });
  }
}

/** Goes on until it is aborted. */
async function showProgress(
  client: Client,
  batch: Batch,
  display: Display,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    const jobs = await fetchJobs(client, batch);
    signal.throwIfAborted();
    display.update(jobs.map(jobProgress));
    await delay(pollMs, undefined, { signal });
  }
}

async function fetchJobs(client: Client, batch: Batch): Promise<Job[]> {
  return Promise.all(batch.jobs.map(async ({ id }) => client.call("getJob", { params: { id } })));
}

function jobProgress(job: Job): JobProgress {
  const { fraction, message } = job.telemetry.progress;
  const label = jobLabel({ model: job.model.name, target: job.target });
  return {
    label,
    status: job.status,
    fraction,
    message: isTerminal(job.status) ? "" : (message ?? ""),
  };
}

function jobLabel({ model, target }: { readonly model: string; readonly target: string }): string {
  return `${model} ${target}`;
}
