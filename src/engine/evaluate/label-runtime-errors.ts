import { ServiceError, type ErrorCode } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { ModelPair } from "./model-pair.ts";
import { RuntimeCrashError } from "./runtime-process.ts";

interface LabelOptions {
  readonly signal: AbortSignal;
  /** Code of the error unless the runtime crashed; `evaluation_failed` where it is absent. */
  readonly code?: ErrorCode | undefined;
  /** What the model was run on, from a blank on. */
  readonly place?: string;
}

/**
 * Waits for work of the runtime and adds to its errors which model they are about.
 * @throws ServiceError with the given code, or the signal's reason if it was aborted
 */
export async function labelRuntimeErrors<T>(
  which: keyof ModelPair,
  work: Promise<T>,
  { signal, code = "evaluation_failed", place = "" }: LabelOptions,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal.throwIfAborted();
    const isCrash = error instanceof RuntimeCrashError;
    if (error instanceof ServiceError && !isCrash) throw error;
    const message = `The ${which} could not be run${place}: ${errorMessage(error)}`;
    throw new ServiceError(isCrash ? "evaluation_failed" : code, message, { cause: error });
  }
}
