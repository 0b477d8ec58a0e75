import type { z } from "zod";
import { deletion, jobChange } from "../contract/routes/event-routes.ts";
import { type BatchSummary, batchSummary } from "../contract/jobs/page.ts";
import { readEventStream } from "./read-event-stream.ts";
import { type Connection, sendRequest } from "./send-request.ts";

export interface ServiceChange {
  /** What the next request passes as `after`. */
  readonly seq: number;
  readonly job?: z.output<typeof jobChange>;
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
  const query = { after: after?.toString() };
  const answer = await sendRequest("streamEvents", { query }, { ...connection, signal });
  for await (const { event, id, data } of readEventStream(answer.body)) {
    const seq = Number(id);
    if (event === "job") yield { seq, job: jobChange.parse(JSON.parse(data)) };
    else if (event === "batch") yield { seq, batch: batchSummary.parse(JSON.parse(data)) };
    else if (event === "job.deleted") yield { seq, deletedJob: parseDeleted(data) };
    else if (event === "batch.deleted") yield { seq, deletedBatch: parseDeleted(data) };
    else yield { seq };
  }
}

function parseDeleted(text: string): string {
  return deletion.parse(JSON.parse(text)).id;
}
