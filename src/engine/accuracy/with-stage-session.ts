import { mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { labelRuntimeErrors } from "../evaluate/label-runtime-errors.ts";
import type { ModelPair } from "../evaluate/model-pair.ts";
import { ModelSession } from "../evaluate/model-session.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel } from "../onnx/write-model.ts";
import type { RunSettings } from "./sample-visitor.ts";

interface StageSessionOptions extends RunSettings {
  /** The model that the stage is from. */
  readonly which: keyof ModelPair;
}

/**
 * Writes a stage to a folder of its own and opens it; deletes the folder afterwards.
 * @throws ServiceError evaluation_failed if the runtime cannot load it; storage_full
 */
export async function withStageSession(
  model: OnnxModel,
  { which, executionProvider, threads, scratchDirectory, signal }: StageSessionOptions,
  use: (session: ModelSession) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(path.join(scratchDirectory, "stage-"));
  try {
    await writeModel(model, { directory: folder, name: "model", signal });
    const file = path.join(folder, "model.onnx");
    const opening = ModelSession.open(file, { executionProvider, threads, signal });
    await using session = await labelRuntimeErrors(which, opening, { signal });
    await use(session);
  } finally {
    await rm(folder, { recursive: true });
  }
}
