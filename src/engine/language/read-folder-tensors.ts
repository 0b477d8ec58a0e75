import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { modelFilePath } from "../../contract/models/manifest.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { type CheckpointTensor, invalidFileError } from "../checkpoints/checkpoint-tensor.ts";
import { hasFileOrHead } from "../checkpoints/remote-files.ts";
import { readSafetensors } from "../checkpoints/read-safetensors.ts";

/** Names that weights have in a folder: those of one file, or of the index of several. */
export const weightsFileName = "model.safetensors";
export const indexFileName = `${weightsFileName}.index.json`;

const shardIndex = z.object({ weight_map: z.record(z.string(), modelFilePath) });

/**
 * The files that an index names, each once.
 * @throws ServiceError model_invalid
 */
export function readShardNames(indexPath: string): string[] {
  return [...new Set(Object.values(readWeightMap(indexPath)))];
}

function readWeightMap(indexPath: string): Record<string, string> {
  try {
    return shardIndex.parse(JSON.parse(readFileSync(indexPath, "utf8"))).weight_map;
  } catch (cause) {
    const problem = "it is not an index of weights: weight_map must name a file for each tensor";
    throw invalidFileError(indexPath, undefined, problem, cause);
  }
}

interface FolderTensors {
  readonly files: readonly string[];
  readonly tensors: ReadonlyMap<string, CheckpointTensor>;
}

/**
 * The tensors of a folder's safetensors files, each in the file that the index names.
 * @throws ServiceError model_invalid, model_truncated, model_unsupported
 */
export function readFolderTensors(folder: string): FolderTensors {
  const indexPath = path.join(folder, indexFileName);
  if (!existsSync(indexPath)) {
    const file = path.join(folder, weightsFileName);
    if (!hasFileOrHead(file)) {
      const message = `The folder has neither ${weightsFileName} nor ${indexFileName}`;
      throw new ServiceError("model_invalid", message);
    }
    const tensors = readSafetensors(file).map((tensor) => [tensor.name, tensor] as const);
    return { files: [file], tensors: new Map(tensors) };
  }
  const weightMap = readWeightMap(indexPath);
  const files = [...new Set(Object.values(weightMap))].map((name) => path.join(folder, name));
  const tensors = new Map<string, CheckpointTensor>();
  for (const file of files) {
    if (!hasFileOrHead(file)) {
      throw invalidFileError(
        indexPath,
        undefined,
        `it names ${path.basename(file)}, which is missing`,
      );
    }
    for (const tensor of readSafetensors(file)) {
      const named = weightMap[tensor.name];
      if (named === undefined || path.join(folder, named) !== file) {
        const place = named === undefined ? "in no file" : `in ${named}`;
        throw invalidFileError(file, tensor.name, `${indexFileName} says that it is ${place}`);
      }
      tensors.set(tensor.name, tensor);
    }
  }
  for (const [name, file] of Object.entries(weightMap)) {
    if (tensors.has(name)) continue;
    throw invalidFileError(indexPath, name, `${quoteName(file)} does not have it`);
  }
  return { files, tensors };
}
