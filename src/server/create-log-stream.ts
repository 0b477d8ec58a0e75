import { limits } from "../contract/limits.ts";
import type { LogLine } from "../contract/log.ts";
import { isTerminal, type JobStatus } from "../contract/status.ts";
import type { Records } from "../records/open-records.ts";
import type { LogFormat } from "./log-formats.ts";

/** Lines of one read from the records. */
const pageLines = 500;

interface LogRequest {
  readonly project: string;
  readonly jobId: string;
  /** Number of the last line that the reader has. */
  readonly after: number;
  /** Whether to continue until the job has ended. */
  readonly follow: boolean;
}

/** Ends with the job's final status where the log is complete. */
type LogPages = AsyncGenerator<readonly LogLine[], JobStatus | undefined>;

/** A log as bytes. The records are read only when the reader asks for more. */
export function createLogStream(
  records: Records,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const texts = formatLog(readLogPages(records, request, stop.signal), format);
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value: text } = await texts.next();
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (done) controller.close();
      },
      cancel: () => stop.abort(),
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
      const lines = await records.logs.read(jobId, { after, limit: pageLines });
      if (lines.length > 0) yield lines;
      after = lines.at(-1)?.seq ?? after;
      if (lines.length < pageLines) break;
    }
    if (job === undefined || isTerminal(job.status)) return job?.status;
    if (!follow) return undefined;
  }
  return undefined;
}

/** Returns what follows the last page. */
async function* formatLog(pages: LogPages, format: LogFormat): AsyncGenerator<string, string> {
  let pending = pages.next();
  for (;;) {
    const page = await resolveBeforePing(pending, format);
    if (page === undefined) {
      yield format.ping ?? "";
      continue;
    }
    if (page.done) return page.value === undefined ? "" : format.end(page.value);
    yield page.value.map(format.line).join("");
    pending = pages.next();
  }
}

/** Undefined where a ping is due before the promise resolves. */
async function resolveBeforePing<T>(
  promise: Promise<T>,
  { ping }: LogFormat,
): Promise<T | undefined> {
  if (ping === undefined) return promise;
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, limits.pingSeconds * 1000, undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
