import { ServiceError, type ErrorCode } from "../../contract/errors.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { ModelPair } from "./model-session.ts";
import { RuntimeCrashError } from "./runtime-process.ts";

/**
 * Waits for work of the runtime and adds to its errors which model they are about and, from a blank
 * on, what it was run on.
 * @throws ServiceError with the given code unless the runtime crashed, or the signal's reason if it
 * was aborted
 */
export async function labelRuntimeErrors<T>(
  which: keyof ModelPair,
  work: Promise<T>,
  signal: AbortSignal,
  { code = "evaluation_failed", place = "" }: { code?: ErrorCode | undefined; place?: string } = {},
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal.throwIfAborted();
    const isCrash = error instanceof RuntimeCrashError;
    if (error instanceof ServiceError && !isCrash) throw error;
    const reason = explainFailure(errorMessage(error)) ?? errorMessage(error);
    const message = `The ${which} could not be run${place}: ${reason}`;
    throw new ServiceError(isCrash ? "evaluation_failed" : code, message, { cause: error });
  }
}

/** How ONNX Runtime, CUDA's libraries and the end of a process say that there was no memory. */
const shortage =
  /failed to allocate memory|smaller than requested bytes|out of memory|bad_alloc|_ALLOC(?:ATION)?_FAILED/i;

/** Whether work failed since there was no memory for it, of the machine or of the GPU. */
export function lacksMemory(error: unknown): error is ServiceError {
  return error instanceof ServiceError && shortage.test(errorMessage(error.cause ?? error));
}

/** What went wrong, without the C++ functions and files of the runtime that stand around it. */
function explainFailure(message: string): string | undefined {
  const [, bytes] =
    /Failed to allocate memory for requested buffer of size (\d+)/.exec(message) ?? [];
  if (bytes !== undefined)
    return `there is no memory for a buffer of ${formatBytes(Number(bytes))}`;
  if (/ExecutionProvider_Cuda: Failed to load/i.test(message))
    return "ONNX Runtime cannot load its CUDA provider on this machine";
  return /\b(?:CUDA|CUDNN|CUBLAS) failure \d+: [^;]*[^;\s]/.exec(message)?.[0];
}
