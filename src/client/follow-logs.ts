import { setTimeout as delay } from "node:timers/promises";
import { job } from "../contract/job.ts";
import { type LogLine, logLine } from "../contract/log.ts";
import { isTerminal, type JobStatus } from "../contract/status.ts";
import { type ClientOptions, send } from "./call-route.ts";
import { isConnectionError, retry } from "./retry.ts";

const pauseMs = 200;

interface FollowOptions {
  /** Number of the last line already seen. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

/**
 * Lines of a job's output until it has ended, and then its final status. After a broken connection it goes on behind the last
 * line, so that none is lost and none comes twice.
 */
export async function* followLogs(
  jobId: string,
  { after = 0, signal }: FollowOptions,
  options: ClientOptions,
): AsyncGenerator<LogLine, JobStatus> {
  const params = { id: jobId };
  const headers = { accept: "application/x-ndjson" };
  for (let last = after; ; await delay(pauseMs, undefined, signal && { signal })) {
    try {
      const query = { after: String(last) };
      const answer = await retry(() => send("streamLogs", { params, query, headers }, { ...options, signal }), signal);
      for await (const text of linesOf(answer.body)) {
        const line = logLine.parse(JSON.parse(text));
        last = line.seq;
        yield line;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!isConnectionError(error)) throw error;
    }
    const answer = await retry(() => send("getJob", { params }, { ...options, signal }), signal);
    const { status } = job.parse(await answer.body.json());
    const left = isTerminal(status) ? await remaining(jobId, last, { ...options, signal }) : [];
    yield* left;
    if (isTerminal(status)) return status;
  }
}

/** Lines that a connection cut near the end has left out. */
async function remaining(
  jobId: string,
  after: number,
  options: ClientOptions & { signal: AbortSignal | undefined },
): Promise<LogLine[]> {
  return retry(async () => {
    const query = { after: String(after), follow: "false" };
    const headers = { accept: "application/x-ndjson" };
    const answer = await send("streamLogs", { params: { id: jobId }, query, headers }, options);
    const text = await answer.body.text();
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => logLine.parse(JSON.parse(line)));
  }, options.signal);
}

/** Complete lines of a stream. What follows the last line break was cut off. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
