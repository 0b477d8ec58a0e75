import { setTimeout as delay } from "node:timers/promises";
import { OpenPublications } from "./open-publications.ts";
import type { PublicationContext } from "./publication.ts";

/** Changes within it are published together. */
const coalesceMs = 1_000;
/** Failed publications are tried again without a change. */
const recheckMs = 3_000;
const closeTimeoutMs = 2_000;

/**
 * Publishes all open reports after each change, and at intervals, until it is stopped. Of several
 * replicas the leader does.
 */
export function startReportLoop(context: PublicationContext): { stop(): Promise<void> } {
  const { records, log } = context;
  const stopped = new AbortController();
  const { signal } = stopped;
  const publications = new OpenPublications(context, signal);
  let changed = Promise.withResolvers<void>();
  const unsubscribe = records.changes.onChanged(() => changed.resolve());

  async function startDue(): Promise<void> {
    await publications
      .startDue()
      .catch((error: unknown) => log("error", "Reports cannot be read", { error }));
  }

  async function runUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      if (records.replica.isLeader()) await startDue();
      await Promise.race([changed.promise, sleepUnlessStopped(recheckMs, signal)]);
      await sleepUnlessStopped(coalesceMs, signal);
    }
  }
  const running = runUntilStopped();

  return {
    async stop() {
      unsubscribe();
      stopped.abort();
      await running;
      await Promise.race([publications.settled(), delay(closeTimeoutMs)]);
    },
  };
}

async function sleepUnlessStopped(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => {});
}
