import { z } from "zod";
import { artifact, artifactName } from "./artifact.ts";
import { batch, batchRequest } from "./batch.ts";
import type { ErrorCode } from "./errors.ts";
import { batchId, jobId, tokenId } from "./id.ts";
import { job, jobRequest } from "./job.ts";
import { limits } from "./limits.ts";
import { sha256, uploadRange } from "./model.ts";
import { batchPage, batchQuery, integerParameter, jobPage, jobQuery } from "./page.ts";
import type { ResponseHeader } from "./response-headers.ts";
import { target } from "./target.ts";
import {
  createdToken,
  exchangedToken,
  exchangeRequest,
  type Scope,
  token,
  tokenRequest,
} from "./token.ts";

/** What a successful answer holds: a JSON document, nothing, or bytes of the given media types. */
export type Reply = (
  | { readonly json: z.ZodType }
  | { readonly empty: true }
  | { readonly stream: readonly string[] }
) & {
  readonly headers?: readonly ResponseHeader[];
};

export interface Route {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** Relative to the base URL, which ends in `/v1`; `{name}` is a path parameter. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** Scope the token needs; null where any valid token will do. */
  readonly scope: Scope | null;
  /** No token is needed at all. */
  readonly open?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Request headers the route reads, lower-case. */
  readonly headers?: z.ZodObject;
  /** JSON body. */
  readonly body?: z.ZodType;
  /** The body is a stream of bytes instead of JSON. */
  readonly upload?: true;
  readonly replies: Readonly<Partial<Record<200 | 201 | 202 | 204 | 206 | 304, Reply>>>;
  /** Codes beyond those that every route can answer with. */
  readonly errors: readonly ErrorCode[];
  /** Headers that answers with some of these codes carry. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, readonly ResponseHeader[]>>>;
}

const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]+$/)
  .optional()
  .describe(
    `The same key and body within ${limits.idempotencyHours} hours give the first answer again.`,
  );

const creationHeaders = z.object({ "idempotency-key": idempotencyKey });

const waitHeaders = creationHeaders.extend({
  prefer: z
    .string()
    .max(100)
    .optional()
    .describe(
      `\`wait=N\` answers when the job has ended, or after N seconds at the latest; N is at most ${limits.preferWaitSeconds}.`,
    ),
});

const creationErrors = [
  "unsupported_media_type",
  "payload_too_large",
  "idempotency_key_reused",
  "idempotency_in_progress",
] as const;

const createdHeaders = ["location", "idempotency-replayed"] as const;
const fileHeaders = ["etag", "accept-ranges", "content-disposition"] as const;

const uploadedModel = z
  .object({
    source: z.string().describe("What to name in `model.source`."),
    sha256,
    bytes: z.int(),
  })
  .meta({ id: "UploadedModel" });

/** Every endpoint under `/v1`. Server, client and OpenAPI document are bound to this table. */
export const routes = {
  startCompression: {
    method: "POST",
    path: "/compress",
    summary: "Start a compression job",
    scope: "jobs:write",
    headers: creationHeaders,
    body: jobRequest,
    replies: { 202: { json: job, headers: createdHeaders } },
    errors: [...creationErrors, "unknown_target", "model_source_refused", "model_not_found"],
  },
  startQuantization: {
    method: "POST",
    path: "/quantize",
    summary: "Start a direct hardware quantization",
    scope: "jobs:write",
    headers: waitHeaders,
    body: jobRequest,
    replies: {
      200: { json: job, headers: [...createdHeaders, "preference-applied"] },
      202: { json: job, headers: [...createdHeaders, "preference-applied"] },
    },
    errors: [...creationErrors, "unknown_target", "model_source_refused", "model_not_found"],
  },
  listJobs: {
    method: "GET",
    path: "/jobs",
    summary: "List jobs, active and historical, newest first",
    scope: "jobs:read",
    query: jobQuery,
    replies: { 200: { json: jobPage } },
    errors: ["invalid_cursor"],
  },
  getJob: {
    method: "GET",
    path: "/jobs/{id}",
    summary: "Status and telemetry of a job",
    scope: "jobs:read",
    params: z.object({ id: jobId }),
    replies: { 200: { json: job } },
    errors: ["not_found"],
  },
  cancelJob: {
    method: "POST",
    path: "/jobs/cancel/{id}",
    summary: "Terminate a job at once",
    scope: "jobs:write",
    params: z.object({ id: jobId }),
    replies: { 200: { json: job }, 202: { json: job } },
    errors: ["not_found", "job_finished"],
  },
  streamLogs: {
    method: "GET",
    path: "/jobs/{id}/logs",
    summary: "Terminal output of a job, streamed while it runs",
    scope: "jobs:read",
    params: z.object({ id: jobId }),
    query: z.strictObject({
      after: integerParameter(z.int().min(0))
        .default(0)
        .describe("Number of the last line already seen."),
      follow: z
        .enum(["true", "false"])
        .default("true")
        .describe("Whether to go on until the job ends, or to stop after the lines there are."),
    }),
    headers: z.object({
      accept: z.string().max(1000).optional(),
      "last-event-id": z
        .string()
        .regex(/^\d{1,15}$/)
        .optional()
        .describe("As `after`, sent by event-stream clients that reconnect."),
    }),
    replies: { 200: { stream: ["text/plain", "text/event-stream", "application/x-ndjson"] } },
    errors: ["not_found", "not_acceptable"],
  },
  listArtifacts: {
    method: "GET",
    path: "/jobs/{id}/artifacts",
    summary: "Files that a job produced",
    scope: "jobs:read",
    params: z.object({ id: jobId }),
    replies: {
      200: { json: z.object({ artifacts: z.array(artifact) }).meta({ id: "ArtifactList" }) },
    },
    errors: ["not_found"],
  },
  getArtifact: {
    method: "GET",
    path: "/jobs/{id}/artifacts/{name}",
    summary: "Download a file that a job produced",
    scope: "jobs:read",
    params: z.object({ id: jobId, name: artifactName }),
    headers: z.object({
      range: z.string().max(200).optional().describe("One range of bytes, `bytes=FIRST-LAST`."),
      "if-none-match": z.string().max(1000).optional(),
      "if-range": z.string().max(200).optional(),
    }),
    replies: {
      200: { stream: ["application/octet-stream"], headers: [...fileHeaders, "content-length"] },
      206: {
        stream: ["application/octet-stream"],
        headers: [...fileHeaders, "content-length", "content-range"],
      },
      304: { empty: true, headers: ["etag"] },
    },
    errors: ["not_found", "range_not_satisfiable"],
  },
  submitBatch: {
    method: "POST",
    path: "/batches",
    summary: "Submit several models for several targets",
    scope: "jobs:write",
    headers: creationHeaders,
    body: batchRequest,
    replies: { 202: { json: batch, headers: createdHeaders } },
    errors: [...creationErrors, "unknown_target", "model_source_refused", "model_not_found"],
  },
  listBatches: {
    method: "GET",
    path: "/batches",
    summary: "List batches, newest first",
    scope: "jobs:read",
    query: batchQuery,
    replies: { 200: { json: batchPage } },
    errors: ["invalid_cursor"],
  },
  getBatch: {
    method: "GET",
    path: "/batches/{id}",
    summary: "Status of a batch and its jobs",
    scope: "jobs:read",
    params: z.object({ id: batchId }),
    replies: { 200: { json: batch } },
    errors: ["not_found"],
  },
  cancelBatch: {
    method: "POST",
    path: "/batches/cancel/{id}",
    summary: "Terminate all jobs of a batch at once",
    scope: "jobs:write",
    params: z.object({ id: batchId }),
    replies: { 200: { json: batch }, 202: { json: batch } },
    errors: ["not_found", "batch_finished"],
  },
  findModel: {
    method: "HEAD",
    path: "/models/{sha256}",
    summary: "Whether a model was uploaded, or how much of it",
    scope: "models:write",
    params: z.object({ sha256 }),
    replies: { 200: { empty: true, headers: ["content-length"] } },
    errors: ["not_found"],
    errorHeaders: { not_found: ["upload-offset"] },
  },
  uploadModel: {
    method: "PUT",
    path: "/models/{sha256}",
    summary: "Upload a model",
    scope: "models:write",
    params: z.object({ sha256 }),
    headers: z.object({ "content-range": uploadRange.optional() }),
    upload: true,
    replies: { 200: { json: uploadedModel }, 201: { json: uploadedModel } },
    errors: [
      "upload_offset_mismatch",
      "payload_too_large",
      "unsupported_media_type",
      "model_checksum_mismatch",
      "storage_full",
    ],
    errorHeaders: { upload_offset_mismatch: ["upload-offset"] },
  },
  listTargets: {
    method: "GET",
    path: "/targets",
    summary: "Hardware profiles that jobs can name",
    scope: "jobs:read",
    replies: { 200: { json: z.object({ targets: z.array(target) }).meta({ id: "TargetList" }) } },
    errors: [],
  },
  listTokens: {
    method: "GET",
    path: "/tokens",
    summary: "List access tokens",
    scope: "admin",
    replies: { 200: { json: z.object({ tokens: z.array(token) }).meta({ id: "TokenList" }) } },
    errors: [],
  },
  createToken: {
    method: "POST",
    path: "/tokens",
    summary: "Make an access token",
    scope: "admin",
    headers: creationHeaders,
    body: tokenRequest,
    replies: { 201: { json: createdToken, headers: createdHeaders } },
    errors: [...creationErrors],
  },
  exchangeToken: {
    method: "POST",
    path: "/tokens/exchange",
    summary: "Exchange a workflow's identity token for an access token",
    scope: null,
    open: true,
    body: exchangeRequest,
    replies: { 200: { json: exchangedToken } },
    errors: [
      "unsupported_media_type",
      "payload_too_large",
      "identity_token_invalid",
      "identity_token_refused",
    ],
  },
  revokeToken: {
    method: "DELETE",
    path: "/tokens/{id}",
    summary: "Revoke an access token",
    scope: "admin",
    params: z.object({ id: tokenId }),
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
  getOpenApi: {
    method: "GET",
    path: "/openapi.json",
    summary: "This interface as an OpenAPI 3.1 document",
    scope: null,
    replies: { 200: { json: z.record(z.string(), z.unknown()) } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
export type RouteName = keyof Routes;

/** Every code that the route can answer with. */
export function routeErrorCodes(route: Route): ErrorCode[] {
  return [
    ...(route.body ? (["malformed_request"] as const) : []),
    ...(route.open ? [] : (["unauthorized"] as const)),
    ...(route.scope ? (["missing_scope"] as const) : []),
    ...route.errors,
    "validation_failed",
    "internal_error",
    "unavailable",
  ];
}
