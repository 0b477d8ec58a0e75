import { createHash } from "node:crypto";
import path from "node:path";
import type { TensorSource } from "../../onnx/read-tensor.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { hashSource } from "../../onnx/hash-source.ts";
import { outputLengths } from "./output-writer.ts";
import type { ModelTask } from "./weight-task.ts";

export interface DigestOptions {
  /** SHA-256 of the ONNX file or checkpoint where it is known: none of its weights is hashed then. */
  readonly modelSha256?: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * The same for a task wherever the model's files are, and another one for any other task or other
 * content of the weight.
 */
export async function taskDigest(
  model: OnnxModel,
  task: ModelTask,
  { modelSha256, signal }: DigestOptions,
): Promise<string> {
  const { source } = task;
  const content = identifySource(model, source, modelSha256) ?? {
    sha256: await hashSource(source, signal),
  };
  const outputs = outputLengths(model, task);
  return createHash("sha256")
    .update(JSON.stringify({ ...task, source: content, outputs }))
    .digest("hex");
}

/** What a source has of a model whose hash is known; undefined for others. */
function identifySource(
  { path: modelPath }: OnnxModel,
  source: TensorSource,
  modelSha256: string | undefined,
) {
  if (modelSha256 === undefined || source.kind === "memory") return undefined;
  if (source.kind === "checkpoint") {
    const folder = path.dirname(modelPath);
    const relative = (key: string, value: unknown) =>
      key === "path" && typeof value === "string" ? path.relative(folder, value) : value;
    return { modelSha256, pieces: JSON.stringify(source.pieces, relative) };
  }
  if (source.path !== modelPath) return undefined;
  return { modelSha256, offset: source.offset, length: source.length };
}
