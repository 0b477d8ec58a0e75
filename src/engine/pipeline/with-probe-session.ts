import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { ModelSession } from "../runtime/model-session.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel } from "../onnx/write-model.ts";

export interface ProbeOptions {
  /** Folder for files that live as long as the call. */
  readonly scratchDirectory: string;
  /** Threads of each operator. */
  readonly threads: number;
  readonly signal: AbortSignal;
}

/**
 * Writes a model to learn something from the runtime, and opens it with graph optimizations off.
 * The folder of the files, which `use` gets, is deleted afterwards.
 * @throws ServiceError evaluation_failed if the runtime cannot load or run it
 */
export async function withProbeSession<T>(
  model: OnnxModel,
  { scratchDirectory, threads, signal }: ProbeOptions,
  use: (session: ModelSession, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(scratchDirectory, "probe-"));
  try {
    await writeModel(model, { directory: folder, name: "model", signal });
    await using session = await ModelSession.open(path.join(folder, "model.onnx"), {
      executionProvider: "cpu",
      threads,
      optimize: false,
      spinning: true,
      profilePrefix: path.join(folder, "profile"),
      signal,
    });
    return await use(session, folder);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ServiceError) throw error;
    const message = `The model could not be measured: ${errorMessage(error)}`;
    throw new ServiceError("evaluation_failed", message, { cause: error });
  } finally {
    await rm(folder, { recursive: true });
  }
}
