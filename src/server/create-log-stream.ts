import { isTerminal } from "../contract/jobs/status.ts";
import { createByteStream } from "./create-byte-stream.ts";
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
