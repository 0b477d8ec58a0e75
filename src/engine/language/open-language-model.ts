import path from "node:path";
import { sizeOfFile } from "../checkpoints/remote-files.ts";
import { isGguf } from "../checkpoints/read-gguf.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { CheckpointWeights } from "./checkpoint-weights.ts";
import type { LanguageModel } from "./decoder-facts.ts";
import { writeDecoderGraph } from "./decoder-graph.ts";
import { openGgufModel } from "./gguf-model.ts";
import { readConfig } from "./read-config.ts";
import { readFolderTensors } from "./read-folder-tensors.ts";

/** The file of a folder that a checkpoint is opened by. */
export const configFileName = "config.json";

/** Whether a path is one of a checkpoint: its `config.json`, or a GGUF file. */
export function isCheckpoint(file: string): boolean {
  return path.basename(file) === configFileName || isGguf(file);
}

/**
 * Reads the headers of a checkpoint, which is a folder with `config.json` and safetensors files, or
 * a GGUF file. Where the weights are many gigabytes it is done in milliseconds.
 * @param file path of the `config.json`, or of the GGUF file
 * @throws ServiceError model_invalid, model_truncated, model_unsupported
 */
export function readLanguageModel(file: string): LanguageModel {
  if (path.basename(file) !== configFileName) return openGgufModel(file);
  const facts = readConfig(file);
  const { files, tensors } = readFolderTensors(path.dirname(file));
  const bytes = files.reduce((sum, shard) => sum + sizeOfFile(shard), 0);
  return { facts, tensors, bytes };
}

/** ONNX Runtime's attention over cached keys and values runs on GPUs in half precision only. */
const computedTypes = { cpu: "float32", cuda: "float16" } as const;

/**
 * Opens a checkpoint as an ONNX model for an execution provider, whose weights are read from the
 * checkpoint when they are needed.
 * @throws ServiceError those of readLanguageModel
 */
export function openLanguageModel(file: string, provider: keyof typeof computedTypes): OnnxModel {
  const { facts, tensors, bytes } = readLanguageModel(file);
  const weights = new CheckpointWeights(tensors);
  return writeDecoderGraph(facts, weights, computedTypes[provider], { path: file, bytes });
}
