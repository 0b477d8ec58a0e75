import type { LogLine } from "../contract/jobs/log.ts";
import type { JobStatus } from "../contract/jobs/status.ts";

/** A log in one media type. */
export interface LogFormat {
  readonly line: (line: LogLine) => string;
  /** Follows the last line of a job that has ended. */
  readonly end: (end: { readonly status: JobStatus; readonly seq: number }) => string;
  /** Keeps a connection without lines open. */
  readonly ping?: string;
}

export const logFormats = {
  "text/plain": { line: ({ text }) => `${text}\n`, end: () => "" },
  "text/event-stream": {
    line: (line) => `id: ${line.seq}\nevent: log\ndata: ${JSON.stringify(line)}\n\n`,
    // Its id is sent again by clients that reconnect: they have everything.
    end: ({ status, seq }) => `id: ${seq}\nevent: end\ndata: ${JSON.stringify({ status })}\n\n`,
    ping: ": ping\n\n",
  },
  "application/x-ndjson": { line: (line) => `${JSON.stringify(line)}\n`, end: () => "" },
} as const satisfies Record<string, LogFormat>;
