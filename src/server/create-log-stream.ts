import { limits } from "../contract/limits.ts";
import { isTerminal } from "../contract/status.ts";
import type { LogFeed } from "./log-feeds.ts";
import type { LogFormat } from "./log-formats.ts";

interface LogRequest {
  /** Number of the last line that the reader has. */
  readonly after: number;
  /** Whether to continue until the job has ended. */
  readonly follow: boolean;
  /** Whether the reader may still read. */
  readonly isAllowed: () => Promise<boolean>;
}

const encoder = new TextEncoder();

/**
 * A log as bytes; closes its feed. The records are read only when the reader asks for more, so that
 * of a reader who takes nothing one page is in memory.
 */
export function createLogStream(
  feed: LogFeed,
  request: LogRequest,
  format: LogFormat,
): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const pieces = readLog(feed, { ...request, signal: stop.signal }, format);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (stop.signal.aborted) return;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        stop.abort();
        feed[Symbol.dispose]();
        // A generator that is suspended at a `yield` would stay so.
        void pieces.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Ends with the log, or when the reader may no longer read. */
async function* readLog(
  feed: LogFeed,
  { after, follow, isAllowed, signal }: LogRequest & { readonly signal: AbortSignal },
  format: LogFormat,
): AsyncGenerator<Uint8Array, void> {
  using _feed = feed;
  const mayReadOn = createAccessCheck(isAllowed);
  let lastSent = Date.now();
  while (!signal.aborted && (await mayReadOn())) {
    const { bytes, lastSeq, status, version } = await feed.read(after);
    after = lastSeq;
    if (bytes.length > 0) {
      yield bytes;
      lastSent = Date.now();
      continue;
    }
    if (status !== undefined && isTerminal(status)) {
      const end = format.end({ status, seq: after });
      if (end !== "") yield encoder.encode(end);
      return;
    }
    if (!follow || status === undefined) return;
    if (format.ping !== undefined && Date.now() - lastSent >= limits.pingSeconds * 1000) {
      yield encoder.encode(format.ping);
      lastSent = Date.now();
    }
    await feed.untilChanged(version);
  }
}

/** Asks at most once in the time in which a revocation takes effect. */
function createAccessCheck(isAllowed: LogRequest["isAllowed"]): () => Promise<boolean> {
  let checked = Date.now();
  return async () => {
    if (Date.now() - checked < limits.accessCheckSeconds * 1000) return true;
    checked = Date.now();
    return isAllowed();
  };
}
