import { createHash } from "node:crypto";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { hashSource } from "../../onnx/hash-source.ts";
import { outputLengths } from "./output-writer.ts";
import type { WeightTask } from "./weight-task.ts";

export interface DigestOptions {
  /** SHA-256 of the ONNX file where it is known: no weight in that file is hashed then. */
  readonly modelSha256?: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * The same for a task wherever the model's files are, and another one for any other task or other
 * content of the weight.
 */
export async function taskDigest(
  model: OnnxModel,
  task: WeightTask,
  { modelSha256, signal }: DigestOptions,
): Promise<string> {
  const { source } = task;
  const isIdentified =
    source.kind === "file" && source.path === model.path && modelSha256 !== undefined;
  const content = isIdentified
    ? { modelSha256, offset: source.offset, length: source.length }
    : { sha256: await hashSource(source, signal) };
  const outputs = outputLengths(model, task);
  return createHash("sha256")
    .update(JSON.stringify({ ...task, source: content, outputs }))
    .digest("hex");
}
