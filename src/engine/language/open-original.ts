import { countValues } from "../checkpoints/checkpoint-values.ts";
import { checkModel } from "../onnx/check-model.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { checkTotalModelBytes, openModel } from "../onnx/open-model.ts";
import { isCheckpoint, openLanguageModel } from "./open-language-model.ts";

/**
 * Opens the model of a job: an ONNX file, or a checkpoint of a language model by its `config.json` or
 * its GGUF file. All files together, with what is computed from them, may have `maxBytes`.
 * @param provider that a checkpoint's graph is for
 * @throws ServiceError those of openModel and of openLanguageModel
 */
export async function openOriginal(
  path: string,
  maxBytes: number,
  provider: "cpu" | "cuda" = "cpu",
): Promise<OnnxModel> {
  if (!isCheckpoint(path)) return openModel(path, maxBytes);
  const model = openLanguageModel(path, provider);
  checkTotalModelBytes(model.bytes + countComputedBytes(model), maxBytes);
  checkModel(model);
  return model;
}

/** Rotary caches have a row for each position, and a configuration may say any number of them. */
function countComputedBytes({ payloads }: OnnxModel): number {
  const pieces = payloads.flatMap((each) => (each.kind === "checkpoint" ? each.pieces : []));
  const computed = pieces.filter(({ kind }) => kind !== "stored");
  return computed.reduce((sum, piece) => sum + 4 * countValues(piece), 0);
}
