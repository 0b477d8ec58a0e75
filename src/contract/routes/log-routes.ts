import { z } from "zod";
import { jobId } from "../id.ts";
import { logEnd, logLine } from "../jobs/log.ts";
import { limits } from "../limits.ts";
import { integerParameter } from "../page.ts";
import type { Route } from "./route.ts";

export const logRoutes = {
  streamLogs: {
    method: "GET",
    path: "/jobs/{id}/logs",
    summary: "Terminal output of a job, streamed while it runs",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    query: z.strictObject({
      after: integerParameter(z.int().min(0))
        .default(0)
        .describe("Number of the last line already seen."),
      before: integerParameter(z.int().min(1))
        .optional()
        .describe(
          "Number of the first line already seen: the answer is the `limit` lines before it, or " +
            `fewer where those have more than ${limits.logPageBytes} bytes, and ends. A number ` +
            "beyond the last line asks for the last lines.",
        ),
      limit: integerParameter(z.int().min(1).max(limits.logPageLines))
        .default(limits.logPageLines)
        .describe("Lines of an answer with `before`."),
      follow: z
        .enum(["true", "false"])
        .default("true")
        .describe(
          "Whether to continue until the job ends, or to stop after the present lines. An answer " +
            "with `before` always stops, and is not an event stream.",
        ),
    }),
    headers: z.object({
      accept: z.string().max(1000).optional(),
      "last-event-id": z
        .string()
        .regex(/^\d{1,15}$/, { error: "must be the id of an event" })
        .optional()
        .describe("As `after`, sent by event-stream clients that reconnect."),
    }),
    replies: {
      200: {
        stream: ["text/plain", "text/event-stream", "application/x-ndjson"],
        events: { log: logLine, end: logEnd },
        headers: ["x-accel-buffering"],
      },
      // The job has ended, and an event stream that reconnects has all of its log.
      204: { empty: true },
    },
    errors: ["not_found", "not_acceptable"],
  },
} as const satisfies Record<string, Route>;
