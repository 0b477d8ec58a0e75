import type { ApiRequest } from "./api-request.ts";
import { backOffMs } from "./back-off.ts";
import { KubernetesError } from "./kubernetes-error.ts";

const maxAttempts = 8;
const maxRetryMs = 5_000;
const transientStatuses = new Set([500, 502, 503, 504]);
/** Errors of connections that were never opened: the server has not received the request. */
const unsentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Delay before the request is retried, in milliseconds; undefined when it is not to be retried. */
export function retryDelayMs(
  request: ApiRequest,
  error: unknown,
  attempt: number,
): number | undefined {
  if (!(error instanceof KubernetesError) || attempt >= maxAttempts) return undefined;
  const wasUnsent = error.status === 429 || unsentCodes.has(networkErrorCode(error.cause));
  const isLost =
    error.status === undefined && networkErrorCode(error.cause) !== "UND_ERR_DESTROYED";
  const isTransient = isLost || (error.status !== undefined && transientStatuses.has(error.status));
  if (!wasUnsent && !(isTransient && request.repeatable)) return undefined;
  return (error.retryAfterSeconds ?? 0) * 1000 + backOffMs(attempt, maxRetryMs);
}

function networkErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
