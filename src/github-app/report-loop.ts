import { setTimeout as delay } from "node:timers/promises";
import { httpErrorStatus } from "../github/http-error-status.ts";
import type { Records } from "../records/open-records.ts";
import type { ReportRecord } from "../records/insert-report.ts";
import type { Installations } from "./installations.ts";
import type { Log } from "../log/json-log.ts";
import { publishReport } from "./publish-report.ts";

interface ReportLoopOptions {
  readonly records: Records;
  readonly installations: Installations;
  /** Whether check runs get buttons. */
  readonly hasActions: boolean;
  readonly log: Log;
}

/** Changes within it are looked at together. */
const coalesceMs = 1_000;
/** Reports are looked at again, since what failed may succeed now. */
const recheckMs = 3_000;
/** Between two updates of a check run that is in progress. */
const progressIntervalMs = 10_000;
const maxRetryDelayMs = 300_000;
/** With the longest pauses, about a day. */
const maxFailures = 300;
const closeTimeoutMs = 2_000;

/** How it goes with telling one report. */
interface PublicationState {
  isBusy: boolean;
  failures: number;
  /** Milliseconds of `performance.now()`. */
  notBefore: number;
  progressAt: number;
}

/**
 * Tells GitHub of all open reports, after each change and from time to time, until it is stopped. What GitHub refuses is
 * logged and told later or given up; jobs do not notice.
 */
export function startReportLoop(context: ReportLoopOptions): { stop(): Promise<void> } {
  const { records, log } = context;
  const stopped = new AbortController();
  const { signal } = stopped;
  const states = new Map<string, PublicationState>();
  const publications = new Set<Promise<void>>();
  let wake = () => {};
  let changed = Promise.resolve();
  const rearm = () => {
    changed = new Promise((resolve) => {
      wake = resolve;
    });
  };
  rearm();
  const unsubscribe = records.changes.onChanged(() => wake());

  async function startDuePublications(): Promise<void> {
    const open = await records.reports.listOpen();
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, { isBusy }] of states) if (!ids.has(id) && !isBusy) states.delete(id);
    for (const report of open) {
      const state = states.get(report.id) ?? {
        isBusy: false,
        failures: 0,
        notBefore: 0,
        progressAt: -Infinity,
      };
      states.set(report.id, state);
      if (state.isBusy || state.notBefore > performance.now()) continue;
      const work = publishAndReschedule(context, report, { state, signal }).finally(() =>
        publications.delete(work),
      );
      publications.add(work);
    }
  }

  async function runUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      rearm();
      await startDuePublications().catch((error: unknown) =>
        log("error", "Reports cannot be read", { error }),
      );
      await Promise.race([changed, sleepUnlessStopped(recheckMs, signal)]);
      await sleepUnlessStopped(coalesceMs, signal);
    }
  }
  const running = runUntilStopped();

  return {
    async stop() {
      unsubscribe();
      stopped.abort();
      await running;
      await Promise.race([Promise.allSettled(publications), delay(closeTimeoutMs)]);
    },
  };
}

async function publishAndReschedule(
  { records, installations, hasActions, log }: ReportLoopOptions,
  report: ReportRecord,
  { state, signal }: { state: PublicationState; signal: AbortSignal },
): Promise<void> {
  const { repository } = report.settings;
  state.isBusy = true;
  const withProgress = performance.now() - state.progressAt >= progressIntervalMs;
  if (withProgress) state.progressAt = performance.now();
  try {
    const client = await installations.getClient(repository);
    await publishReport(report, { records, client, hasActions, withProgress, signal });
    state.failures = 0;
  } catch (error) {
    if (signal.aborted) return;
    installations.invalidate(repository);
    state.failures++;
    state.notBefore =
      performance.now() + Math.min(maxRetryDelayMs, coalesceMs * 2 ** state.failures);
    const isGivenUp = isPermanentError(error) || state.failures >= maxFailures;
    log("error", isGivenUp ? "A report is given up" : "GitHub does not take a report", {
      report: report.id,
      repository,
      error,
    });
    if (isGivenUp) await closeAbandonedReport(records, report, log);
  } finally {
    state.isBusy = false;
  }
}

/** What is not there or not understood will not be later either. */
function isPermanentError(error: unknown): boolean {
  return [404, 410, 422].includes(httpErrorStatus(error) ?? 0);
}

async function closeAbandonedReport(
  records: Records,
  report: ReportRecord,
  log: Log,
): Promise<void> {
  await records.reports
    .close(report)
    .catch((error: unknown) => log("error", "A report cannot be closed", { error }));
}

async function sleepUnlessStopped(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => {});
}
