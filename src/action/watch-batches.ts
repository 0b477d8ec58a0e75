import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { getBatches } from "./get-batches.ts";
import type { JobTracker } from "./job-tracker.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { Submission } from "./submit-batches.ts";

const pollMs = 2_000;
const statusLineMs = 30_000;

interface WatchOptions {
  readonly tracker: JobTracker;
  readonly signal: AbortSignal;
  readonly onPoll: () => void;
}

/** Polls the batches and logs their progress until all jobs have ended. */
export async function watchBatches(
  client: ServiceClient,
  { batches }: Submission,
  { tracker, signal, onPoll }: WatchOptions,
): Promise<void> {
  const ids = batches.map(({ id }) => id);
  let loggedAt = performance.now();
  let loggedLine = "";
  for (;;) {
    const current = await retryWhileUnreachable(
      async () => getBatches(client, ids, signal),
      signal,
    );
    tracker.recordBatches(current);
    onPoll();
    if (current.every(({ status }) => isTerminal(status))) return;
    const line = tracker.statusLine();
    if (line !== loggedLine && performance.now() - loggedAt >= statusLineMs) {
      loggedAt = performance.now();
      loggedLine = line;
      core.info(`[batch] ${line}`);
    }
    await delay(pollMs, undefined, { signal });
  }
}
