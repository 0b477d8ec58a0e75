import { z } from "zod";
import { textLimits } from "./limits.ts";

interface ErrorKind {
  /** HTTP status of an answer with the code, also where only a job can fail with it. */
  readonly status: number;
  readonly title: string;
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
}

function permanentError(status: number, title: string): ErrorKind {
  return { status, title, retryable: false };
}

function retryableError(status: number, title: string): ErrorKind {
  return { status, title, retryable: true };
}

/** Every error code of answers and of `job.error`. */
export const errorTable = {
  malformed_request: permanentError(400, "The request cannot be parsed"),
  invalid_cursor: permanentError(400, "The cursor is not one that this list gave"),
  unauthorized: permanentError(401, "A valid bearer token or a session is required"),
  missing_scope: permanentError(403, "The token lacks a scope"),
  cross_site_request: permanentError(403, "The request of a session comes from another site"),
  sign_in_refused: permanentError(401, "The sign-in is not valid"),
  identity_token_invalid: permanentError(401, "The identity token is not valid"),
  identity_token_refused: permanentError(403, "No trust policy fits the identity token"),
  not_found: permanentError(404, "No such resource"),
  method_not_allowed: permanentError(405, "The resource does not have this method"),
  not_acceptable: permanentError(406, "None of the accepted media types can be produced"),
  job_finished: permanentError(409, "The job has already ended"),
  batch_finished: permanentError(409, "The batch has already ended"),
  job_unfinished: permanentError(409, "The job has not ended"),
  artifact_missing: permanentError(410, "The file of the job is no longer stored"),
  link_expired: permanentError(410, "The link is no longer valid"),
  nothing_to_retry: permanentError(409, "No job of the batch has the status that is retried"),
  job_in_use: permanentError(409, "Something else still needs the job"),
  batch_unfinished: permanentError(409, "The batch has not ended"),
  token_replaced: permanentError(409, "Another token took the token's place"),
  model_in_use: permanentError(409, "A job that has not ended needs the model"),
  upload_offset_mismatch: retryableError(409, "The upload cannot continue at this byte"),
  payload_too_large: permanentError(413, "The body is larger than allowed"),
  unsupported_media_type: permanentError(415, "The content type is not supported"),
  range_not_satisfiable: permanentError(416, "The range lies outside the file"),
  validation_failed: permanentError(422, "The request has invalid fields"),
  unknown_target: permanentError(422, "No such target"),
  idempotency_key_reused: permanentError(422, "The Idempotency-Key was used with another body"),
  too_many_requests: retryableError(429, "Too many requests within a minute"),
  too_many_jobs: retryableError(429, "Too many jobs of the project wait"),
  too_many_webhooks: permanentError(429, "The project has as many webhooks as it may have"),
  too_many_members: permanentError(429, "The project has as many members as it may have"),
  too_many_deliveries: retryableError(
    429,
    "The webhook has as many waiting deliveries as it may have",
  ),
  too_many_manifests: permanentError(429, "The project has as many manifests as it may have"),
  too_many_bytes: permanentError(429, "The project stores as much as it may store"),
  internal_error: retryableError(500, "The service failed"),
  unavailable: retryableError(503, "The service is not ready"),
  storage_full: retryableError(507, "The storage is full"),

  model_not_found: permanentError(422, "The model does not exist at its source"),
  model_source_refused: permanentError(422, "The model's source is not allowed"),
  model_fetch_failed: retryableError(422, "The model could not be fetched"),
  model_source_slow: retryableError(422, "The model's host sends it too slowly"),
  model_checksum_mismatch: permanentError(422, "The model's SHA-256 is not the expected one"),
  model_too_large: permanentError(413, "The model is larger than allowed"),
  model_invalid: permanentError(422, "The file is not a valid ONNX model"),
  model_truncated: permanentError(422, "The model file is truncated"),
  model_opset_unsupported: permanentError(422, "The model's opset is not supported"),
  model_unsupported: permanentError(422, "The model uses something that is not supported"),
  external_data_refused: permanentError(422, "External data points outside the model's folder"),
  external_data_missing: permanentError(422, "An external data file is missing"),
  external_data_short: permanentError(
    422,
    "An external data file is shorter than its tensors need",
  ),
  external_data_unused: permanentError(
    422,
    "The manifest names files that the model does not refer to",
  ),
  nothing_to_quantize: permanentError(422, "The recipe fits no weight of the model"),
  recipe_unsupported: permanentError(422, "The recipe cannot be applied"),
  calibration_data_invalid: permanentError(422, "The calibration data does not fit the model"),
  evaluation_data_invalid: permanentError(422, "The evaluation data does not fit the model"),
  evaluation_failed: permanentError(422, "The model could not be run for the evaluation"),
  accuracy_below_floor: permanentError(422, "The result is too far from the original"),
  out_of_memory: permanentError(422, "The worker ran out of memory"),
  out_of_disk: permanentError(422, "The worker used more disk than it may"),
  worker_killed: retryableError(500, "The worker was killed"),
  worker_crashed: retryableError(500, "The worker crashed"),
  deadline_exceeded: permanentError(422, "The job took longer than its deadline"),
  resource_invalid: permanentError(
    422,
    "The custom resource cannot be a job, or a policy denies it",
  ),
  pod_start_failed: permanentError(422, "The worker's pod cannot be started"),
  service_restarted: retryableError(500, "The service restarted too often while the job ran"),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorTable;
export const errorCode = z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]);

const fieldError = z.object({
  pointer: z
    .string()
    .describe(
      "JSON pointer of the field (RFC 6901), within the body, or `query/NAME`, `path/NAME`, " +
        "`header/NAME`.",
    ),
  message: z.string(),
});
export type FieldError = z.infer<typeof fieldError>;

/** RFC 9457 problem details. */
export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: errorCode,
    detail: z.string(),
    errors: z.array(fieldError).optional(),
    requestId: z.string().optional().describe("Names the request in the service's log."),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof problem>;

/** Why a job failed. */
export const jobError = z.object({
  code: errorCode.describe("Stable code: docs/reference.md#error-codes."),
  message: z.string().max(textLimits.errorMessage).describe("The same for people."),
});
export type JobError = z.infer<typeof jobError>;

interface ServiceErrorOptions extends ErrorOptions {
  fields?: readonly FieldError[];
  headers?: Readonly<Record<string, string>>;
}

/** The one error that callers of the service see; any other is `internal_error` to them. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly fields: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.fields = options.fields ?? [];
    this.headers = options.headers ?? {};
  }
}

export function problemDetails(error: ServiceError): Problem {
  const { status, title } = errorTable[error.code];
  return {
    type: `https://modeloptimization.dev/errors/${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    errors: error.fields.length > 0 ? [...error.fields] : undefined,
  };
}
