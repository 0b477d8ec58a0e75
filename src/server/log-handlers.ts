import { createLogStream } from "./create-log-stream.ts";
import { logFormats } from "./log-formats.ts";
import { negotiateMediaType } from "./negotiate-media-type.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";

export const logHandlers: Pick<RouteHandlers, "streamLogs"> = {
  async streamLogs({ records }, { caller, params, query, headers }) {
    const mediaType = negotiateMediaType(headers.accept, [
      "text/plain",
      "text/event-stream",
      "application/x-ndjson",
    ]);
    const { id } = await requireJob(records, caller, params.id);
    const request = {
      project: caller.project,
      jobId: id,
      after: Math.max(query.after, Number(headers["last-event-id"] ?? 0)),
      follow: query.follow === "true",
    };
    const stream = createLogStream(records, request, logFormats[mediaType]);
    return { status: 200, stream, mediaType };
  },
};
