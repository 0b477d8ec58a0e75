import { ServiceError } from "./errors.ts";

interface UsedUpQuota {
  readonly code: "too_many_requests" | "too_many_jobs" | "too_many_bytes";
  readonly message: string;
  /** As headers name it. */
  readonly name: string;
  readonly size: number;
  /** Seconds that the size is for; absent where it is no rate. */
  readonly windowSeconds?: number;
  readonly retrySeconds: number;
}

/**
 * The refusal of what is beyond a quota, with the headers of
 * draft-ietf-httpapi-ratelimit-headers.
 */
export function quotaError({
  code,
  message,
  name,
  size,
  windowSeconds,
  retrySeconds,
}: UsedUpQuota): ServiceError {
  const window = windowSeconds === undefined ? "" : `;w=${windowSeconds}`;
  return new ServiceError(code, message, {
    headers: {
      "retry-after": String(retrySeconds),
      "ratelimit-policy": `"${name}";q=${size}${window}`,
      ratelimit: `"${name}";r=0;t=${retrySeconds}`,
    },
  });
}
