import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { JobTracker } from "./job-tracker.ts";
import { outlast } from "./outlast.ts";
import { printOutput } from "./print-output.ts";
import type { Submission } from "./submit-batches.ts";

const pollMs = 2_000;
const statusLineMs = 30_000;
/** Of a job's last lines, for its report. */
const keptLines = 100;

interface Following {
  readonly tracker: JobTracker;
  /** Where the jobs' output goes. */
  readonly output: Writable;
  readonly signal: AbortSignal;
  /** After each look at the batches. */
  readonly onLook: () => void;
  /** After the job's output was printed, of which it gets the last lines. */
  readonly onEnd: (job: Job, lastLines: readonly string[]) => void;
}

/**
 * Prints the output of all jobs, one after the other in their order, until all have ended.
 * @throws UnreachableError
 */
export async function followJobs(client: Client, submission: Submission, following: Following): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([following.signal, over.signal]);
  const parts = [
    watchBatches(client, submission, { ...following, signal }),
    printOutputs(client, submission, { ...following, signal }),
  ];
  try {
    await Promise.all(parts);
  } finally {
    over.abort();
    await Promise.allSettled(parts);
  }
}

/** Keeps the tracker up to date until all jobs have ended. */
async function watchBatches(
  client: Client,
  { batches }: Submission,
  { tracker, signal, onLook }: Following,
): Promise<void> {
  let toldAt = performance.now();
  let told = "";
  for (;;) {
    const current = await outlast(
      async () => Promise.all(batches.map(async ({ id }) => client.call("getBatch", { params: { id } }, { signal }))),
      signal,
    );
    tracker.noteBatches(current);
    onLook();
    if (current.every(({ status }) => isTerminal(status))) return;
    const line = tracker.statusLine();
    if (line !== told && performance.now() - toldAt >= statusLineMs) {
      toldAt = performance.now();
      told = line;
      core.info(`[batch] ${line}`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

async function printOutputs(
  client: Client,
  { jobs }: Submission,
  { tracker, output, signal, onEnd }: Following,
): Promise<void> {
  for (const { id, model, target, former } of jobs) {
    if (former) {
      core.info(`${model} for ${target}: completed by an earlier attempt of this run`);
      continue;
    }
    const lastLines: string[] = [];
    await printOutput(`${model} for ${target}`, output, async (print) => {
      let after = 0;
      await outlast(async () => {
        for await (const line of client.followLogs(id, { after, signal })) {
          await print(line.text);
          after = line.seq;
          lastLines.push(line.text);
          if (lastLines.length > keptLines) lastLines.shift();
        }
      }, signal);
    });
    const job = await outlast(async () => client.call("getJob", { params: { id } }, { signal }), signal);
    tracker.noteJobs([job]);
    onEnd(job, lastLines);
    core.info(`[batch] ${tracker.statusLine()}`);
  }
}
