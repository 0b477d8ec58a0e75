import { limits } from "../contract/limits.ts";
import type { LogLine } from "../contract/log.ts";
import { isTerminal, type JobStatus } from "../contract/status.ts";
import type { Records } from "../records/open-records.ts";
import type { LogFormat } from "./log-formats.ts";

/** Lines that are read from records at once. */
const pageLines = 500;

interface LogRequest {
  readonly project: string;
  readonly jobId: string;
  /** Number of the last line that the reader has. */
  readonly after: number;
  /** Whether to go on until the job has ended. */
  readonly follow: boolean;
}

/** Pages of the job's lines as they come, and then its final status where the log is complete. */
async function* readLogPages(
  records: Records,
  { project, jobId, after, follow }: LogRequest,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[], JobStatus | undefined> {
  for await (const _ of records.changes.watch(jobId, signal)) {
    // A job that is seen to have ended has all its lines: it has to be read before them.
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

/** A log as bytes. The reader's pace is kept: nothing is read from records before it is asked for. */
export function createLogStream(
  records: Records,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const pages = readLogPages(records, request, stop.signal);
  const encoder = new TextEncoder();
  let pending: ReturnType<typeof pages.next> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        pending ??= pages.next();
        const page = format.ping === undefined ? await pending : await resolveBeforePing(pending);
        if (page === undefined) {
          controller.enqueue(encoder.encode(format.ping));
          return;
        }
        pending = undefined;
        const text = page.done
          ? formatLogEnd(format, page.value)
          : page.value.map(format.line).join("");
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (page.done) controller.close();
      },
      cancel() {
        stop.abort();
      },
    },
    { highWaterMark: 0 },
  );
}

function formatLogEnd(format: LogFormat, status: JobStatus | undefined): string {
  return status === undefined ? "" : format.end(status);
}

/** Undefined where the promise is not settled when it is time for a ping. */
async function resolveBeforePing<T>(promise: Promise<T>): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, limits.pingSeconds * 1000, undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
