import { setTimeout as delay } from "node:timers/promises";
import { limits } from "../../contract/limits.ts";
import { reachedOrigin } from "../../contract/people/may.ts";
import type { Routes } from "../../contract/routes/routes.ts";
import type { Change, ChangeSearch } from "../../records/jobs/change-records.ts";
import type { Records } from "../../records/open-records.ts";
import { createConcurrencyLimit } from "../http/concurrency-limit.ts";
import { createByteStream } from "../http/byte-stream.ts";
import { mayStillCall } from "./may-still-call.ts";
import type { RouteHandlers, RouteInput } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

const encoder = new TextEncoder();

/** @returns the handlers, which bound how many streams are open at once */
export function createEventHandlers(): Pick<RouteHandlers, "streamEvents"> {
  const enterStream = createConcurrencyLimit(limits.eventStreams);
  return { streamEvents: (context, input) => streamEvents(context, input, enterStream) };
}

async function streamEvents(
  context: ServerContext,
  { caller, query, headers, request }: RouteInput<Routes["streamEvents"]>,
  enterStream: (project: string) => Disposable,
): ReturnType<RouteHandlers["streamEvents"]> {
  const { records } = context;
  const { after, follow, ...filters } = query;
  const origin = reachedOrigin(caller, "readWork");
  const search = { project: caller.project, origin, ...filters };
  const last = await records.changeLog.last();
  const lastEvent = headers["last-event-id"];
  const seen = lastEvent === undefined ? after : Number(lastEvent);
  // A number that is not of these records, such as from before a restore, starts over.
  const start = { search, after: Math.min(seen ?? last, last), follow: follow === "true" };
  const enter = () => enterStream(caller.project);
  using _room = enter();
  const stream = createByteStream({
    write: (signal) => writeEvents(records, { ...start, enter }, signal),
    ping: ": ping\n\n",
    isAllowed: () => mayStillCall(context, { caller, request }),
  });
  const mediaType = "text/event-stream";
  return { status: 200, stream, mediaType, headers: { "x-accel-buffering": "no" } };
}

interface EventsRequest {
  readonly search: ChangeSearch;
  readonly after: number;
  readonly follow: boolean;
  /** Takes a place among the open streams. */
  readonly enter: () => Disposable;
}

async function* writeEvents(
  { changes, changeLog }: Records,
  { search, after, follow, enter }: EventsRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  using _place = enter();
  // A number without data is not an event; a client that reconnects before the first one sends it.
  yield encoder.encode(`id: ${after}\n\n`);
  for await (const _ of changes.watchAll(signal)) {
    for (let isLast = false; !isLast;) {
      const page = await changeLog.listAfter(search, after);
      const events = page.changes.map(formatChangeEvent).join("");
      if (events !== "") yield encoder.encode(events);
      after = page.end;
      isLast = page.isLast;
    }
    if (!follow) return;
    await delay(limits.eventIntervalMs);
  }
}

function formatChangeEvent({ seq, event, data }: Change): string {
  return `id: ${seq}\nevent: ${event}\ndata: ${data}\n\n`;
}
