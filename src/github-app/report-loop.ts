import { setTimeout as delay } from "node:timers/promises";
import type { Records } from "../records/open-records.ts";
import type { ReportRecord } from "../records/report-record.ts";
import { statusOf } from "./github-client.ts";
import type { Installations } from "./installations.ts";
import type { Log } from "./log.ts";
import { tellReport } from "./tell-report.ts";

interface LoopContext {
  readonly records: Records;
  readonly installations: Installations;
  /** Whether check runs get buttons. */
  readonly hasButtons: boolean;
  readonly log: Log;
}

/** Changes within it are looked at together. */
const lookMs = 1_000;
/** Reports are looked at again, since what failed may succeed now. */
const restMs = 3_000;
/** Between two updates of a check run that is in progress. */
const progressMs = 10_000;
const longestPauseMs = 300_000;
/** With the longest pauses, about a day. */
const maxFailures = 300;
const closeMs = 2_000;

/** How it goes with telling one report. */
interface Course {
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
export function startReportLoop(context: LoopContext): { stop(): Promise<void> } {
  const { records, log } = context;
  const stopped = new AbortController();
  const { signal } = stopped;
  const courses = new Map<string, Course>();
  const atWork = new Set<Promise<void>>();
  let wake = () => {};
  let changed = Promise.resolve();
  const rearm = () => {
    changed = new Promise((resolve) => {
      wake = resolve;
    });
  };
  rearm();
  const unsubscribe = records.changes.onChanged(() => wake());

  async function look(): Promise<void> {
    const open = await records.reports.open();
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, { isBusy }] of courses) if (!ids.has(id) && !isBusy) courses.delete(id);
    for (const report of open) {
      const course = courses.get(report.id) ?? { isBusy: false, failures: 0, notBefore: 0, progressAt: -Infinity };
      courses.set(report.id, course);
      if (course.isBusy || course.notBefore > performance.now()) continue;
      const work = tell(context, report, { course, signal }).finally(() => atWork.delete(work));
      atWork.add(work);
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      rearm();
      await look().catch((error: unknown) => log("error", "Reports cannot be read", { error }));
      await Promise.race([changed, pause(restMs, signal)]);
      await pause(lookMs, signal);
    }
  }
  const running = run();

  return {
    async stop() {
      unsubscribe();
      stopped.abort();
      await running;
      await Promise.race([Promise.allSettled(atWork), delay(closeMs)]);
    },
  };
}

async function tell(
  { records, installations, hasButtons, log }: LoopContext,
  report: ReportRecord,
  { course, signal }: { course: Course; signal: AbortSignal },
): Promise<void> {
  const { repository } = report.settings;
  course.isBusy = true;
  const withProgress = performance.now() - course.progressAt >= progressMs;
  if (withProgress) course.progressAt = performance.now();
  try {
    const client = await installations.client(repository);
    await tellReport(report, { records, client, hasButtons, withProgress, signal });
    course.failures = 0;
  } catch (error) {
    if (signal.aborted) return;
    installations.forget(repository);
    course.failures++;
    course.notBefore = performance.now() + Math.min(longestPauseMs, lookMs * 2 ** course.failures);
    const isGivenUp = isRefused(error) || course.failures >= maxFailures;
    log("error", isGivenUp ? "A report is given up" : "GitHub does not take a report", {
      report: report.id,
      repository,
      error,
    });
    if (isGivenUp) await giveUp(records, report, log);
  } finally {
    course.isBusy = false;
  }
}

/** What is not there or not understood will not be later either. */
function isRefused(error: unknown): boolean {
  return [404, 410, 422].includes(statusOf(error) ?? 0);
}

async function giveUp(records: Records, report: ReportRecord, log: Log): Promise<void> {
  await records.reports.close(report).catch((error: unknown) => log("error", "A report cannot be closed", { error }));
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => {});
}
