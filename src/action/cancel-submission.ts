import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { isTerminal } from "../contract/jobs/status.ts";
import { cancelBatches } from "./cancel-batches.ts";
import { getBatches } from "./get-batches.ts";
import { listJobs } from "./list-jobs.ts";
import type { SubmittedWork } from "./submitted-work.ts";

const waitLimitMs = 20_000;
const pollMs = 500;

/** Cancels what was submitted and, where asked to, waits a while until no worker runs. */
export async function cancelSubmission(
  work: SubmittedWork,
  { waits }: { readonly waits: boolean },
): Promise<void> {
  const ids = work.submission.batches.map(({ id }) => id);
  if (await cancelBatches(work.client, ids)) core.saveState("finished", "true");
  if (!waits) return;
  try {
    await recordEnds(work, ids, AbortSignal.timeout(waitLimitMs));
  } catch (error) {
    core.info(`Not all jobs are seen to have ended: ${String(error)}`);
  }
}

async function recordEnds(
  { client, tracker }: SubmittedWork,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const batches = await getBatches(client, ids, signal);
    tracker.recordBatches(batches);
    if (batches.every(({ status }) => isTerminal(status))) break;
    await delay(pollMs, undefined, { signal });
  }
  for (const batch of ids) tracker.recordJobs(await listJobs(client, { batch }, signal));
}
