import { z } from "zod";
import type { Route } from "./route.ts";
import { batchId } from "../id.ts";
import { batch, batchPage, batchQuery, batchRequest } from "../batches/batch.ts";
import { createdHeaders, creationHeaders, jobCreationErrors } from "../jobs/creation.ts";
import { jobStatus } from "../jobs/status.ts";
import { suiteHistory, suiteHistoryQuery, suiteList } from "../batches/suite.ts";

export const retriedBatch = z.object({ batches: z.array(batch) }).meta({ id: "RetriedBatch" });
export type RetriedBatch = z.infer<typeof retriedBatch>;

export const batchRoutes = {
  submitBatch: {
    method: "POST",
    path: "/batches",
    summary: "Submit several models for several targets",
    action: "startWork",
    headers: creationHeaders,
    body: batchRequest,
    audited: true,
    replies: { 202: { json: batch, headers: createdHeaders } },
    errors: jobCreationErrors,
  },
  listBatches: {
    method: "GET",
    path: "/batches",
    summary: "List batches, newest first",
    action: "readWork",
    query: batchQuery,
    replies: { 200: { json: batchPage } },
    errors: ["invalid_cursor"],
  },
  getBatch: {
    method: "GET",
    path: "/batches/{id}",
    summary: "Status of a batch and its jobs",
    action: "readWork",
    names: "batch",
    params: z.object({ id: batchId }),
    replies: { 200: { json: batch } },
    errors: ["not_found"],
  },
  cancelBatch: {
    method: "POST",
    path: "/batches/cancel/{id}",
    summary: "Terminate all jobs of a batch at once",
    action: "cancelWork",
    names: "batch",
    params: z.object({ id: batchId }),
    audited: true,
    replies: { 200: { json: batch }, 202: { json: batch } },
    errors: ["not_found", "batch_finished"],
  },
  retryBatch: {
    method: "POST",
    path: "/batches/{id}/retry",
    summary:
      "Start the failed jobs of a batch again, each with its recipe, as batches of their own: " +
      "one for jobs of one recipe whose models and targets make up a product. They take the " +
      "place of the earlier ones in the batch's report, if the token may request reports",
    action: "retryWork",
    names: "batch",
    params: z.object({ id: batchId }),
    query: z.strictObject({
      status: z
        .array(jobStatus.extract(["Failed", "Cancelled"]))
        .min(1)
        .optional()
        .describe("Which jobs, `Failed` by default; repeat the parameter for both."),
    }),
    headers: creationHeaders,
    audited: true,
    replies: { 202: { json: retriedBatch, headers: ["idempotency-replayed"] } },
    errors: ["not_found", "nothing_to_retry", ...jobCreationErrors],
  },
  deleteBatch: {
    method: "DELETE",
    path: "/batches/{id}",
    summary: "Delete a batch that has ended, with its jobs",
    action: "deleteWork",
    names: "batch",
    params: z.object({ id: batchId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found", "batch_unfinished", "job_in_use"],
  },
} as const satisfies Record<string, Route>;

export const suiteRoutes = {
  listSuites: {
    method: "GET",
    path: "/suites",
    summary: "List suites, those with the newest batches first",
    action: "readWork",
    replies: { 200: { json: suiteList } },
    errors: [],
  },
  getSuiteHistory: {
    method: "GET",
    path: "/suites/history",
    summary:
      "Read what a model of a suite measured for each target over the suite's newest batches",
    action: "readWork",
    query: suiteHistoryQuery,
    replies: { 200: { json: suiteHistory } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
