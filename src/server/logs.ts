import { notFound } from "./not-found.ts";
import { logFormats } from "./log-formats.ts";
import { logStream } from "./log-stream.ts";
import { negotiateMediaType } from "./negotiate-media-type.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

export function logHandlers({ records }: ServerContext): Pick<Handlers, "streamLogs"> {
  return {
    async streamLogs({ caller, params, query, headers }) {
      const mediaType = negotiateMediaType(headers.accept, ["text/plain", "text/event-stream", "application/x-ndjson"]);
      const job = await records.jobs.find(caller.project, params.id);
      if (!job) throw notFound("job", params.id);
      const stream = logStream(
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
