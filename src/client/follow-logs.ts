import type { z } from "zod";
import { isTransient, retryTransient } from "./retry.ts";
import { type Connection, requireRoute, sendRequest } from "./send-request.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import type { JobSummary } from "../contract/jobs/job-summary.ts";
import type { BatchSummary } from "../contract/batches/batch.ts";
import type { JobStatus } from "../contract/jobs/status.ts";
import { limits } from "../contract/limits.ts";
import { delay } from "../limits/retry.ts";

const pauseMs = 1_000;

interface FollowLogsOptions {
  /** Number of the last line that is not wanted; by default 0. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

/**
 * Yields the lines of a job's log until it has ended, and returns its terminal status. Continues
 * after the last line however often the service is away meanwhile: none is lost and none comes
 * twice.
 */
export async function* followLogs(
  jobId: string,
  { after = 0, signal }: FollowLogsOptions,
  connection: Connection,
): AsyncGenerator<LogLine, JobStatus> {
  const headers = { accept: "text/event-stream" };
  const { events } = requireRoute(connection.routes, "streamLogs").replies[200];
  for (let last = after; ; await delay(pauseMs, signal)) {
    try {
      const input = { params: { id: jobId }, query: { after: String(last) }, headers };
      const answer = await retryTransient(
        () => sendRequest("streamLogs", input, { ...connection, signal }),
        signal,
      );
      for await (const { event, data } of readEventStream(answer.body)) {
        if (event === "end") return events.end.parse(JSON.parse(data)).status;
        if (event !== "log") continue;
        const line = events.log.parse(JSON.parse(data));
        last = line.seq;
        yield line;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!isTransient(error)) throw error;
    }
  }
}

export interface ServiceChange {
  /** What the next request passes as `after`. */
  readonly seq: number;
  readonly job?: JobSummary;
  readonly batch?: BatchSummary;
  /** Ids of what was deleted. */
  readonly deletedJob?: string;
  readonly deletedBatch?: string;
}

export interface ReadChangesOptions {
  /** Number of the last change that was seen; by default only later ones are read. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal;
}

/**
 * Yields changes of jobs and batches as they happen, first one without either that has the present
 * number, until the connection is lost.
 */
export async function* readChanges(
  { after, signal }: ReadChangesOptions,
  connection: Connection,
): AsyncGenerator<ServiceChange> {
  const { events } = requireRoute(connection.routes, "streamEvents").replies[200];
  const parse = <E extends keyof typeof events>(event: E, data: string) => {
    return events[event].parse(JSON.parse(data)) as z.output<(typeof events)[E]>;
  };
  const query = { after: after?.toString() };
  const answer = await sendRequest("streamEvents", { query }, { ...connection, signal });
  for await (const { event, id, data } of readEventStream(answer.body)) {
    const seq = Number(id);
    if (event === "job") yield { seq, job: parse(event, data) };
    else if (event === "batch") yield { seq, batch: parse(event, data) };
    else if (event === "job.deleted") yield { seq, deletedJob: parse(event, data).id };
    else if (event === "batch.deleted") yield { seq, deletedBatch: parse(event, data).id };
    else yield { seq };
  }
}

interface StreamEvent {
  readonly event: string | undefined;
  readonly id: string | undefined;
  /** Empty for an event that has only an id. */
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
      const [event, id, data = ""] = ["event", "id", "data"].map((name) => fields.get(name));
      if (id !== undefined || data !== "") yield { event, id, data };
    }
  }
}

/** Silence after which an answer counts as lost; pings keep quiet streams open. */
export const silenceLimitMs = 4 * limits.pingSeconds * 1000;
