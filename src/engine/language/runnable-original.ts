import { mkdir } from "node:fs/promises";
import path from "node:path";
import { writeModel } from "../onnx/write-model.ts";
import { isCheckpoint, openLanguageModel } from "./open-language-model.ts";

/**
 * The original as an ONNX file that a runtime loads: a checkpoint is written in float32, and for
 * GPUs in half precision.
 * @param scratch folder for the files
 */
export async function writeRunnableOriginal(
  modelPath: string,
  provider: "cpu" | "cuda",
  scratch: string,
  signal: AbortSignal,
): Promise<string> {
  if (!isCheckpoint(modelPath)) return modelPath;
  const directory = path.join(scratch, "original");
  await mkdir(directory);
  const model = openLanguageModel(modelPath, provider);
  await writeModel(model, { directory, name: "original", signal });
  return path.join(directory, "original.onnx");
}
