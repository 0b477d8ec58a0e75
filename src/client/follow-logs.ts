import { setTimeout as delay } from "node:timers/promises";
import { logEnd, type LogLine, logLine } from "../contract/log.ts";
import { type JobStatus, jobStatus } from "../contract/status.ts";
import { type ClientOptions, sendRequest } from "./send-request.ts";
import { isConnectionError, retry } from "./retry.ts";

const pauseMs = 200;

interface FollowLogsOptions {
  /** Number of the last line that is not wanted; by default 0. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

/**
 * Yields the lines of a job's log until it has ended, and returns its terminal status. Continues
 * behind the last line after a broken connection: none is lost and none comes twice.
 */
export async function* followLogs(
  jobId: string,
  { after = 0, signal }: FollowLogsOptions,
  options: ClientOptions,
): AsyncGenerator<LogLine, JobStatus> {
  const headers = { accept: "text/event-stream" };
  for (let last = after; ; await delay(pauseMs, undefined, { signal })) {
    try {
      const input = { params: { id: jobId }, query: { after: String(last) }, headers };
      const answer = await retry(
        () => sendRequest("streamLogs", input, { ...options, signal }),
        signal,
      );
      for await (const { event, data } of readEventStream(answer.body)) {
        if (event === "end") return jobStatus.parse(logEnd.parse(JSON.parse(data)).status);
        const line = logLine.parse(JSON.parse(data));
        last = line.seq;
        yield line;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!isConnectionError(error)) throw error;
    }
  }
}

interface StreamEvent {
  readonly event: string | undefined;
  readonly data: string;
}

/** Complete events of an event stream. What follows the last blank line is incomplete. */
async function* readEventStream(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => [line.split(":", 1)[0], line.replace(/^[^:]*: ?/, "")]),
      );
      const data = fields.get("data");
      if (data !== undefined) yield { event: fields.get("event"), data };
    }
  }
}
