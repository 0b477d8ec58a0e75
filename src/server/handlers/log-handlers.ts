import type { Routes } from "../../contract/routes/routes.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { Records } from "../../records/open-records.ts";
import { createLogFeeds, createLogStream, type LogFeeds, logFormats } from "./log-stream.ts";
import { shareAccessChecks } from "./may-still-call.ts";
import { negotiateMediaType } from "../http/negotiate-media-type.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers, RouteInput } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

export function createLogHandlers(context: ServerContext): Pick<RouteHandlers, "streamLogs"> {
  const feeds = createLogFeeds(context.records);
  const mayReadOn = shareAccessChecks(context);
  return { streamLogs: (_context, input) => streamLogs(context, input, feeds, mayReadOn) };
}

async function streamLogs(
  context: ServerContext,
  input: RouteInput<Routes["streamLogs"]>,
  feeds: LogFeeds,
  mayReadOn: ReturnType<typeof shareAccessChecks>,
): ReturnType<RouteHandlers["streamLogs"]> {
  const { records } = context;
  const { caller, params, query, headers, request } = input;
  if (query.before !== undefined) return readEarlierLines(records, input, query.before);
  const mediaType = negotiateMediaType(headers.accept, [
    "text/plain",
    "text/event-stream",
    "application/x-ndjson",
  ]);
  const { id, status } = await requireJob(records, caller, params.id);
  const lastEvent = headers["last-event-id"];
  const after = Math.max(query.after, Number(lastEvent ?? 0));
  // Event sources reconnect after the end of a stream until they get this answer.
  const isReconnected = mediaType === "text/event-stream" && lastEvent !== undefined;
  if (isReconnected && isTerminal(status)) {
    if ((await records.logs.readPage(id, after)).length === 0) return { status: 204 };
  }
  const logRequest = {
    after,
    follow: query.follow === "true",
    isAllowed: () => mayReadOn({ caller, request }),
  };
  const format = logFormats[mediaType];
  const stream = createLogStream(() => feeds.open(id, format), logRequest, format);
  // Nginx would otherwise keep lines back until it has a buffer of them.
  return { status: 200, stream, mediaType, headers: { "x-accel-buffering": "no" } };
}

/** A page of a log for a reader who goes back, such as by scrolling up. */
async function readEarlierLines(
  records: Records,
  { caller, params, headers, query: { after, limit } }: RouteInput<Routes["streamLogs"]>,
  before: number,
): ReturnType<RouteHandlers["streamLogs"]> {
  // An event source would ask for the same page again and again.
  const mediaType = negotiateMediaType(headers.accept, ["text/plain", "application/x-ndjson"]);
  const { id } = await requireJob(records, caller, params.id);
  const lines = await records.logs.readPageBefore(id, { after, before, limit });
  const text = lines.map(logFormats[mediaType].line).join("");
  const stream = new Blob([text]).stream();
  return { status: 200, stream, mediaType, headers: {} };
}
