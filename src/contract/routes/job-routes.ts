import { z } from "zod";
import { createdHeaders, creationHeaders, jobCreationErrors } from "../jobs/creation.ts";
import { jobId } from "../id.ts";
import { job, jobDetail, jobRequest } from "../jobs/job.ts";
import { limits } from "../limits.ts";
import { jobCounts, jobCountsQuery, jobPage, jobQuery, jobSummaryPage } from "../jobs/job-lists.ts";
import type { Route } from "./route.ts";

const preferWait = z.string().max(100).optional();

const waitHeaders = creationHeaders.extend({
  prefer: preferWait.describe(
    "`wait=N` answers when the job has ended, or after N seconds at the latest; " +
      `N is at most ${limits.preferWaitSeconds}.`,
  ),
});

export const jobRoutes = {
  startCompression: {
    method: "POST",
    path: "/compress",
    summary: "Start a compression job",
    action: "startWork",
    headers: creationHeaders,
    body: jobRequest,
    bodyBytes: 262_144,
    audited: true,
    replies: { 202: { json: job, headers: createdHeaders } },
    errors: jobCreationErrors,
  },
  startQuantization: {
    method: "POST",
    path: "/quantize",
    summary: "Start a direct hardware quantization",
    action: "startWork",
    headers: waitHeaders,
    body: jobRequest,
    bodyBytes: 262_144,
    audited: true,
    replies: {
      200: { json: job, headers: [...createdHeaders, "preference-applied"] },
      202: { json: job, headers: [...createdHeaders, "preference-applied"] },
    },
    errors: jobCreationErrors,
  },
  listJobs: {
    method: "GET",
    path: "/jobs",
    summary: "List jobs, active and historical, newest first",
    action: "readWork",
    query: jobQuery,
    replies: { 200: { json: jobPage } },
    errors: ["invalid_cursor"],
  },
  listJobSummaries: {
    method: "GET",
    path: "/jobs/summaries",
    summary: "List jobs as rows: their status and figures without recipe and telemetry",
    action: "readWork",
    query: jobQuery,
    replies: { 200: { json: jobSummaryPage } },
    errors: ["invalid_cursor"],
  },
  countJobs: {
    method: "GET",
    path: "/jobs/counts",
    summary: "How many jobs of a list are in each status",
    action: "readWork",
    query: jobCountsQuery,
    replies: { 200: { json: jobCounts } },
    errors: [],
  },
  getJob: {
    method: "GET",
    path: "/jobs/{id}",
    summary: "Status and telemetry of a job",
    action: "readWork",
    names: "job",
    params: z.object({ id: jobId }),
    headers: z.object({
      "if-none-match": z
        .string()
        .max(1000)
        .optional()
        .describe("`ETag` of an earlier answer: while the job is the same, the answer is 304."),
      prefer: preferWait.describe(
        "`wait=N` answers when the job has ended or, with `If-None-Match`, has changed, or after " +
          `N seconds at the latest; N is at most ${limits.preferWaitSeconds}.`,
      ),
    }),
    replies: {
      200: { json: jobDetail, headers: ["etag", "preference-applied"] },
      304: { empty: true, headers: ["etag", "preference-applied"] },
    },
    errors: ["not_found"],
  },
  cancelJob: {
    method: "POST",
    path: "/jobs/cancel/{id}",
    summary: "Terminate a job at once",
    action: "cancelWork",
    names: "job",
    params: z.object({ id: jobId }),
    audited: true,
    replies: { 200: { json: job }, 202: { json: job } },
    errors: ["not_found", "job_finished"],
  },
  retryJob: {
    method: "POST",
    path: "/jobs/{id}/retry",
    summary: "Start a job that has ended again, as a new job",
    action: "retryWork",
    names: "job",
    params: z.object({ id: jobId }),
    headers: creationHeaders,
    audited: true,
    replies: { 202: { json: job, headers: createdHeaders } },
    errors: ["not_found", "job_unfinished", ...jobCreationErrors],
  },
  deleteJob: {
    method: "DELETE",
    path: "/jobs/{id}",
    summary: "Delete a job that has ended, with its log, its artifacts and its baselines",
    action: "deleteWork",
    names: "job",
    params: z.object({ id: jobId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found", "job_unfinished", "job_in_use"],
  },
} as const satisfies Record<string, Route>;
