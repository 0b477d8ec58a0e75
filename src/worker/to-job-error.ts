import { type JobError, ServiceError } from "../contract/errors.ts";
import { storageError } from "../storage/file-error.ts";

const maxMessageLength = 4096;

/** What a job's caller is told about an error that ended the work. */
export function toJobError(error: unknown): JobError {
  const known = storageError(error);
  const message = known instanceof Error ? known.message : String(known);
  const code =
    known instanceof ServiceError
      ? known.code
      : isOutOfMemory(known)
        ? "out_of_memory"
        : "worker_crashed";
  return { code, message: message.slice(0, maxMessageLength) };
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof RangeError && /allocation failed/i.test(error.message);
}
