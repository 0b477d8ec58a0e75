import { limits } from "../contract/limits.ts";
import type { LogLine } from "../contract/log.ts";
import { isTerminal, type JobStatus } from "../contract/status.ts";
import type { Records } from "../records/open-records.ts";
import type { LogFormat } from "./log-formats.ts";

interface LogRequest {
  readonly project: string;
  readonly jobId: string;
  /** Number of the last line that the reader has. */
  readonly after: number;
  /** Whether to continue until the job has ended. */
  readonly follow: boolean;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

interface LogEnd {
  readonly status: JobStatus;
  /** Number of the last line. */
  readonly seq: number;
}

/** Ends with the job's final status where the log is complete. */
type LogPages = AsyncGenerator<readonly LogLine[], LogEnd | undefined>;

/**
 * A log as bytes. The records are read only when the reader asks for more, so that of a reader who
 * takes nothing one page is in memory.
 */
export function createLogStream(
  records: Records,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const pages = readLogPages(records, request, stop.signal);
  const texts = formatLog(pages, format, createAccessCheck(request));
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value: text } = await texts.next();
        if (stop.signal.aborted) return;
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (done) controller.close();
      },
      async cancel() {
        stop.abort();
        // A generator that is suspended at a `yield` would keep what it watches.
        await texts.return("");
        await pages.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

async function* readLogPages(
  records: Records,
  { project, jobId, after, follow }: LogRequest,
  signal: AbortSignal,
): LogPages {
  for await (const _ of records.changes.watch(jobId, signal)) {
    // The job is read before its lines: one that has ended then has all of them.
    const job = await records.jobs.find(project, jobId);
    for (;;) {
      const lines = await records.logs.readPage(jobId, after);
      if (lines.length === 0) break;
      yield lines;
      after = lines.at(-1)?.seq ?? after;
    }
    if (job === undefined) return undefined;
    if (isTerminal(job.status)) return { status: job.status, seq: after };
    if (!follow) return undefined;
  }
  return undefined;
}

/** Returns what follows the last page; nothing where the reader may no longer read. */
async function* formatLog(
  pages: LogPages,
  format: LogFormat,
  mayReadOn: () => Promise<boolean>,
): AsyncGenerator<string, string> {
  let pending = pages.next();
  let lastSent = Date.now();
  for (;;) {
    const page = await resolveInTime(pending, limits.accessCheckSeconds);
    if (!(await mayReadOn())) return "";
    if (page?.done) return page.value === undefined ? "" : format.end(page.value);
    if (page) {
      yield page.value.map(format.line).join("");
      pending = pages.next();
    } else if (format.ping !== undefined && Date.now() - lastSent >= limits.pingSeconds * 1000) {
      yield format.ping;
    } else {
      continue;
    }
    lastSent = Date.now();
  }
}

/** Asks at most once in the time in which a revocation takes effect. */
function createAccessCheck({ isAllowed }: LogRequest): () => Promise<boolean> {
  let checked = Date.now();
  return async () => {
    if (Date.now() - checked < limits.accessCheckSeconds * 1000) return true;
    checked = Date.now();
    return isAllowed();
  };
}

/** Undefined where the time is over before the promise resolves. */
async function resolveInTime<T>(promise: Promise<T>, seconds: number): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, seconds * 1000, undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
