import { isTerminal } from "../contract/status.ts";
import type { Records } from "../records/open-records.ts";
import { createTextStream } from "./create-text-stream.ts";
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

/** A log as bytes. */
export function createLogStream(
  records: Records,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  return createTextStream({
    write: (signal) => writeLog(records, { ...request, format }, signal),
    ping: format.ping,
    isAllowed: request.isAllowed,
  });
}

/** A text for each page. Returns the format's end where the log is complete. */
async function* writeLog(
  records: Records,
  { project, jobId, after, follow, format }: LogRequest & { readonly format: LogFormat },
  signal: AbortSignal,
): AsyncGenerator<string, string> {
  for await (const _ of records.changes.watch(jobId, signal)) {
    // The job is read before its lines: one that has ended then has all of them.
    const job = await records.jobs.find(project, jobId);
    for (;;) {
      const lines = await records.logs.readPage(jobId, after);
      if (lines.length === 0) break;
      yield lines.map(format.line).join("");
      after = lines.at(-1)?.seq ?? after;
    }
    if (job === undefined) return "";
    if (isTerminal(job.status)) return format.end({ status: job.status, seq: after });
    if (!follow) return "";
  }
  return "";
}
