import type { LogLine } from "../../contract/jobs/log.ts";
import { isTerminal, type JobStatus } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import type { Records } from "../../records/open-records.ts";
import { createByteStream } from "../http/byte-stream.ts";

interface LogRequest {
  /** Number of the last line that the reader has. */
  readonly after: number;
  /** Whether to continue until the job has ended. */
  readonly follow: boolean;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

const encoder = new TextEncoder();

/** A log as bytes. The feed is open while somebody reads. */
export function createLogStream(
  openFeed: () => LogFeed,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  return createByteStream({
    write: (signal) => writeLog(openFeed, { ...request, format }, signal),
    ping: format.ping,
    isAllowed: request.isAllowed,
  });
}

async function* writeLog(
  openFeed: () => LogFeed,
  { after, follow, format }: LogRequest & { readonly format: LogFormat },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  using feed = openFeed();
  signal.addEventListener("abort", () => feed[Symbol.dispose]());
  while (!signal.aborted) {
    const { bytes, lastSeq, status, version } = await feed.read(after);
    after = lastSeq;
    if (bytes.length > 0) {
      yield bytes;
    } else if (status !== undefined && isTerminal(status)) {
      yield encoder.encode(format.end({ status, seq: after }));
      return;
    } else if (!follow || status === undefined) {
      return;
    } else {
      await feed.untilChanged(version);
    }
  }
}

/** A log in one media type. */
interface LogFormat {
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

/** What follows a line of a log, as bytes. */
interface LogChunk {
  readonly bytes: Uint8Array;
  /** Number of the last line in it, or of the line that it follows. */
  readonly lastSeq: number;
  /** The job's, read before the lines: of a job that has ended they are complete. */
  readonly status: JobStatus | undefined;
  readonly version: number;
}

/** One log in one format. All who follow it get the same bytes, read and encoded once. */
interface LogFeed extends Disposable {
  readonly read: (after: number) => Promise<LogChunk>;
  /** Resolves when a later version can be read, and when the feed is closed. */
  readonly untilChanged: (version: number) => Promise<void>;
}

export interface LogFeeds {
  readonly open: (jobId: string, format: LogFormat) => LogFeed;
}

/** The logs that are followed now. */
export function createLogFeeds({ jobs, logs, changes }: Records): LogFeeds {
  const followed = new Map<string, FollowedLog>();
  changes.on("changed", (id) => followed.get(id)?.change());
  changes.onGap(() => followed.forEach((log) => log.change()));

  async function readChunk(jobId: string, format: LogFormat, { after, version }: Position) {
    const status = await jobs.findStatus(jobId);
    const lines = await logs.readPage(jobId, after);
    const bytes = encoder.encode(lines.map(format.line).join(""));
    return { bytes, lastSeq: lines.at(-1)?.seq ?? after, status, version };
  }

  return {
    open(jobId, format) {
      const log = followed.get(jobId) ?? new FollowedLog();
      followed.set(jobId, log);
      const follower: Follower = { wake: () => {} };
      log.followers.add(follower);
      return {
        read: (after) =>
          log.readOnce(format, { after, version: log.version }, (position) =>
            readChunk(jobId, format, position),
          ),
        async untilChanged(version) {
          if (log.version !== version || !log.followers.has(follower)) return;
          await new Promise<void>((resolve) => (follower.wake = resolve));
        },
        [Symbol.dispose]() {
          if (!log.followers.delete(follower)) return;
          follower.wake();
          if (log.followers.size === 0) followed.delete(jobId);
        },
      };
    },
  };
}

interface Position {
  readonly after: number;
  readonly version: number;
}

interface Follower {
  wake: () => void;
}

class FollowedLog {
  readonly followers = new Set<Follower>();
  version = 0;
  /** Of each format the chunk that was read last: those who keep up ask for the same one. */
  readonly #latest = new Map<LogFormat, Position & { readonly chunk: Promise<LogChunk> }>();
  #pause: NodeJS.Timeout | undefined;
  #hasChanged = false;

  /** Changes that follow one another within the interval are one. */
  change(): void {
    this.#hasChanged = true;
    if (this.#pause !== undefined) return;
    this.#publish();
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#hasChanged) this.change();
    }, limits.logIntervalMs);
  }

  readOnce(
    format: LogFormat,
    position: Position,
    read: (position: Position) => Promise<LogChunk>,
  ): Promise<LogChunk> {
    const latest = this.#latest.get(format);
    const isSame = latest?.after === position.after && latest.version === position.version;
    if (isSame) return latest.chunk;
    const chunk = read(position);
    this.#latest.set(format, { ...position, chunk });
    chunk.catch(() => this.#latest.delete(format));
    return chunk;
  }

  #publish(): void {
    this.#hasChanged = false;
    this.version += 1;
    for (const follower of this.followers) follower.wake();
  }
}
