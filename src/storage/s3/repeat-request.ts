import { setTimeout as delay } from "node:timers/promises";
import { errors } from "undici";
import { ServiceError } from "../../contract/errors.ts";
import { S3Error } from "./s3-error.ts";

/** How often a request is sent that is not answered, or with a failure of the server. */
const maxAttempts = 5;
/** How often to a server that is silent: another connection may reach another one. */
const maxSilentAttempts = 2;
const firstRetryMs = 100;
const silences = [
  errors.ConnectTimeoutError,
  errors.HeadersTimeoutError,
  errors.BodyTimeoutError,
] as const;

/** @throws S3Error for a refusal; ServiceError unavailable, storage_full */
export async function repeatRequest<T>(
  sendOnce: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let [attempt, silent] = [1, 0]; ; attempt++) {
    try {
      return await sendOnce();
    } catch (error) {
      signal?.throwIfAborted();
      if (isRefusal(error)) throw refusedAccessError(error) ?? error;
      if (isFull(error)) {
        throw new ServiceError("storage_full", "The S3 server has no space left", { cause: error });
      }
      if (silences.some((silence) => error instanceof silence)) silent++;
      if (attempt === maxAttempts || silent === maxSilentAttempts) throw unavailableError(error);
    }
    await delay(firstRetryMs * 2 ** attempt, undefined, { signal });
  }
}

function isRefusal(error: unknown): boolean {
  const temporary = ["SlowDown", "RequestTimeout", "OperationAborted"];
  return (
    error instanceof S3Error &&
    error.status < 500 &&
    error.status !== 429 &&
    !temporary.includes(error.code)
  );
}

/** A key that is no longer valid, lacks a right or is used by a machine whose clock is wrong. */
function refusedAccessError(error: unknown): ServiceError | undefined {
  if (!(error instanceof S3Error) || ![401, 403].includes(error.status)) return undefined;
  return new ServiceError("unavailable", error.message, { cause: error });
}

function isFull(error: unknown): boolean {
  const codes = ["QuotaExceeded", "XMinioStorageFull"];
  return error instanceof S3Error && (error.status === 507 || codes.includes(error.code));
}

function unavailableError(cause: unknown): ServiceError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new ServiceError("unavailable", `The S3 server does not answer: ${reason}`, { cause });
}

/** Whether the server failed at a request, and would at another one: to clean up is in vain. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}
