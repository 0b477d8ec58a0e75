import { logEnd, type LogLine, logLine } from "../contract/jobs/log.ts";
import { type JobStatus, jobStatus } from "../contract/jobs/status.ts";
import { delay } from "./delay.ts";
import { readEventStream } from "./read-event-stream.ts";
import { type Connection, sendRequest } from "./send-request.ts";
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
  connection: Connection,
): AsyncGenerator<LogLine, JobStatus> {
  const headers = { accept: "text/event-stream" };
  for (let last = after; ; await delay(pauseMs, signal)) {
    try {
      const input = { params: { id: jobId }, query: { after: String(last) }, headers };
      const answer = await retry(
        () => sendRequest("streamLogs", input, { ...connection, signal }),
        signal,
      );
      for await (const { event, data } of readEventStream(answer.body)) {
        if (event === "end") return jobStatus.parse(logEnd.parse(JSON.parse(data)).status);
        if (event !== "log") continue;
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
