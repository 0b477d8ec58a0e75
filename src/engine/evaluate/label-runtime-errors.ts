import { ServiceError, type ErrorCode } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { ModelPair } from "./model-pair.ts";

interface LabelOptions {
  readonly signal: AbortSignal;
  /** Code of the error that is thrown; `evaluation_failed` where it is absent. */
  readonly code?: ErrorCode | undefined;
}

/**
 * Waits for work of the runtime and adds to its errors which model they are about.
 * @throws ServiceError with the given code, or the signal's reason if it was aborted
 */
export async function labelRuntimeErrors<T>(
  which: keyof ModelPair,
  work: Promise<T>,
  { signal, code = "evaluation_failed" }: LabelOptions,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError) throw error;
    const message = `The ${which} could not be run: ${errorMessage(error)}`;
    throw new ServiceError(code, message, { cause: error });
  }
}
