import type { Writable } from "node:stream";
import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import type { Job } from "../contract/jobs/job.ts";
import { jobTitle } from "../report/job-title.ts";
import type { JobTracker } from "./job-tracker.ts";
import { printOutput } from "./print-output.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { StepJob, Submission } from "./submit-batches.ts";
import { watchBatches } from "./watch-batches.ts";

/** Last lines of a job's output that its report shows. */
const keptLines = 100;

interface FollowJobsOptions {
  readonly tracker: JobTracker;
  /** Where the jobs' output goes. */
  readonly output: Writable;
  readonly signal: AbortSignal;
  /** After each poll of the batches. */
  readonly onPoll: () => void;
  /** After the job's output was printed. */
  readonly onJobEnd: (job: Job, lastLines: readonly string[]) => void;
}

/**
 * Prints the output of the jobs, one after the other in their order, until all have ended.
 * @throws UnreachableError
 */
export async function followJobs(
  client: ServiceClient,
  submission: Submission,
  options: FollowJobsOptions,
): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const parts = [
    watchBatches(client, submission, { ...options, signal }),
    printOutputs(client, submission, { ...options, signal }),
  ];
  try {
    await Promise.all(parts);
  } finally {
    over.abort();
    await Promise.allSettled(parts);
  }
}

async function printOutputs(
  client: ServiceClient,
  { jobs }: Submission,
  options: FollowJobsOptions,
): Promise<void> {
  const { tracker, signal, onJobEnd } = options;
  for (const job of jobs) {
    if (job.former) {
      core.info(`${jobTitle(job)}: completed by an earlier attempt of this run`);
      continue;
    }
    const lastLines = await printJobOutput(client, job, options);
    const ended = await retryWhileUnreachable(
      async () => client.call("getJob", { params: { id: job.id } }, { signal }),
      signal,
    );
    tracker.recordJobs([ended]);
    onJobEnd(ended, lastLines);
    core.info(`[batch] ${tracker.statusLine()}`);
  }
}

/** Prints the job's output until it ends. Gives the last lines. */
async function printJobOutput(
  client: ServiceClient,
  job: StepJob,
  { output, signal }: FollowJobsOptions,
): Promise<string[]> {
  const lastLines: string[] = [];
  await printOutput(jobTitle(job), output, async (print) => {
    let after = 0;
    await retryWhileUnreachable(async () => {
      for await (const line of client.followLogs(job.id, { after, signal })) {
        await print(line.text);
        after = line.seq;
        lastLines.push(line.text);
        if (lastLines.length > keptLines) lastLines.shift();
      }
    }, signal);
  });
  return lastLines;
}
