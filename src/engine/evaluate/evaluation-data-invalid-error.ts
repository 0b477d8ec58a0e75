import { ServiceError } from "../../contract/errors.ts";

/** The caller's evaluation data does not fit the model or cannot be read. */
export function evaluationDataInvalidError(message: string, cause?: unknown): ServiceError {
  return new ServiceError("evaluation_data_invalid", message, { cause });
}
