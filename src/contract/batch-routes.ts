import { z } from "zod";
import { batch, batchRequest } from "./batch.ts";
import { createdHeaders, creationHeaders, jobCreationErrors } from "./creation.ts";
import { batchId } from "./id.ts";
import { batchPage, batchQuery } from "./page.ts";
import type { Route } from "./route.ts";

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
