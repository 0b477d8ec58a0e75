import { notFoundError } from "./not-found-error.ts";
import { logFormats } from "./log-formats.ts";
import { createLogStream } from "./log-stream.ts";
import { negotiateMediaType } from "./negotiate-media-type.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

export function logHandlers({ records }: ServerContext): Pick<RouteHandlers, "streamLogs"> {
  return {
    async streamLogs({ caller, params, query, headers }) {
      const mediaType = negotiateMediaType(headers.accept, [
        "text/plain",
        "text/event-stream",
        "application/x-ndjson",
      ]);
      const job = await records.jobs.find(caller.project, params.id);
      if (!job) throw notFoundError("job", params.id);
      const stream = createLogStream(
        records,
        {
          project: caller.project,
          jobId: job.id,
          after: Math.max(query.after, Number(headers["last-event-id"] ?? 0)),
          follow: query.follow === "true",
        },
        logFormats[mediaType],
      );
      return { status: 200, stream, mediaType };
    },
  };
}
