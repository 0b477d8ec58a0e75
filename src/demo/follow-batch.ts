import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/create-client.ts";
import type { Batch } from "../contract/batches/batch.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import type { Display } from "./display.ts";
import type { JobProgress } from "./status-lines.ts";

const pollMs = 300;
const cancelLimitMs = 10_000;

/**
 * Shows output and progress of all jobs until they have ended.
 * @returns the jobs in the order of the batch
 */
export async function followBatch(
  client: Client,
  batch: Batch,
  display: Display,
  signal: AbortSignal,
): Promise<Job[]> {
  const ended = new AbortController();
  const eitherSignal = AbortSignal.any([signal, ended.signal]);
  const width = Math.max(...batch.jobs.map((job) => jobLabel(job).length));
  const logs = batch.jobs.map(async (job) => {
    const label = jobLabel(job).padEnd(width);
    for await (const line of client.followLogs(job.id, { signal: eitherSignal })) {
      display.print(`${label} | ${line.text}`);
    }
  });
  try {
    await Promise.race([Promise.all(logs), showProgress(client, batch, display, eitherSignal)]);
  } finally {
    ended.abort();
  }
  return fetchJobs(client, batch);
}

/** Cancels a batch and waits until none of its processes runs. */
export async function cancelDemoBatch(client: Client, batch: Pick<Batch, "id">): Promise<void> {
  const params = { id: batch.id };
  const signal = AbortSignal.timeout(cancelLimitMs);
  await client.call("cancelBatch", { params }, { signal });
  for (;;) {
    const { status } = await client.call("getBatch", { params }, { signal });
    if (isTerminal(status)) return;
    await delay(pollMs, undefined, { signal });
  }
}

/** Runs until `signal` is aborted. */
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
