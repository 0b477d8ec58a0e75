import { type ErrorCode, type JobError, ServiceError } from "../contract/errors.ts";
import { joinLines } from "../contract/text/hidden-characters.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";
import { errorMessage } from "../log/error-message.ts";
import { storageError } from "../storage/file-error.ts";

/** The job's error for an error that ended its work: messages can quote the model's author. */
export function toJobError(error: unknown): JobError {
  const known = storageError(error);
  const message = truncate(joinLines(errorMessage(known)), textLimits.errorMessage);
  return { code: jobErrorCode(known), message };
}

function jobErrorCode(error: unknown): ErrorCode {
  if (error instanceof ServiceError) return error.code;
  const isOutOfMemory = error instanceof RangeError && /allocation failed/i.test(error.message);
  return isOutOfMemory ? "out_of_memory" : "worker_crashed";
}
