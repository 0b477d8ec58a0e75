import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import type { Batch } from "../contract/batch.ts";
import { isTerminal, jobStatus } from "../contract/status.ts";
import { printOutput } from "./print-output.ts";

const pollMs = 2_000;

interface Following {
  /** Where the jobs' output goes. */
  readonly output: Writable;
  readonly signal: AbortSignal;
}

/** Prints the output of all jobs, one after the other in the order of the batch, until all have ended. */
export async function followBatch(client: Client, batch: Batch, { output, signal }: Following): Promise<Batch> {
  for (const job of batch.jobs) {
    await printOutput(`${job.model} for ${job.target}`, output, async (print) => {
      for await (const line of client.followLogs(job.id, { signal })) await print(line.text);
    });
    core.info(statusLine(await client.call("getBatch", { params: { id: batch.id } }, { signal })));
  }
  for (;;) {
    const current = await client.call("getBatch", { params: { id: batch.id } }, { signal });
    if (isTerminal(current.status)) return current;
    await delay(pollMs, undefined, { signal });
  }
}

function statusLine({ counts, jobs, gatesFailed }: Batch): string {
  const ended = jobs.filter(({ status }) => isTerminal(status)).length;
  const statuses = jobStatus.options.flatMap((status) => {
    const count = counts[status];
    return count > 0 ? `${count} ${status}` : [];
  });
  const gates = gatesFailed > 0 ? `, ${gatesFailed} with gates that failed` : "";
  return `${ended} of ${jobs.length} jobs ended: ${statuses.join(", ")}${gates}`;
}
