import { createHash } from "node:crypto";
import path from "node:path";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { outputLengths } from "./task-outputs.ts";
import type { WeightTask } from "./weight-task.ts";

/** The same for a task wherever the model's files are, and another one for any other task. */
export function taskDigest(model: OnnxModel, task: WeightTask): string {
  const { source } = task;
  const content =
    source.kind === "file"
      ? { ...source, path: path.relative(path.dirname(model.path), source.path) }
      : { sha256: createHash("sha256").update(source.bytes).digest("hex") };
  const outputs = outputLengths(model, task);
  return createHash("sha256")
    .update(JSON.stringify({ ...task, source: content, outputs }))
    .digest("hex");
}
