import { createHash } from "node:crypto";
import { symlink } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { sourceBeside } from "../contract/models/model-source.ts";
import { carriedFileNames } from "../engine/language/language-files.ts";
import { configFileName } from "../engine/language/open-language-model.ts";
import {
  indexFileName,
  readShardNames,
  weightsFileName,
} from "../engine/language/read-folder-tensors.ts";
import type { Pace } from "../storage/download.ts";
import { type FetchedModel, fetchModel, type FetchOptions } from "../storage/fetch-model.ts";

/**
 * Makes the folder of a language model one on this machine: its configuration, its weights and the
 * files of its tokenizer. Files of this machine stay where they are, behind links.
 * @param source of the folder, which ends with "/"
 * @returns the path of `config.json`, all files' bytes, and a SHA-256 of their names and contents
 * @throws ServiceError as `fetchModel()` does, for all files together
 */
export async function fetchCheckpoint(
  source: string,
  options: FetchOptions,
  pace: Pace,
): Promise<FetchedModel> {
  const folder = path.dirname(options.path);
  const fetched: (readonly [name: string, FetchedModel])[] = [];
  let left = options.limits.maxModelBytes;
  const fetchFile = async (name: string) => {
    const target = path.join(folder, name);
    const limits = { ...options.limits, maxModelBytes: left };
    const reference = { source: sourceBeside(source, name) };
    const file = await fetchModel(reference, { ...options, path: target, limits, pace });
    if (file.path !== target) await symlink(file.path, target);
    fetched.push([name, file]);
    left -= file.bytes;
  };
  const fetchOptional = async (name: string) => {
    try {
      await fetchFile(name);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "model_not_found") return false;
      throw error;
    }
  };
  await fetchFile(configFileName);
  for (const name of carriedFileNames) await fetchOptional(name);
  const isSharded = await fetchOptional(indexFileName);
  const shards = isSharded ? readShardNames(path.join(folder, indexFileName)) : [weightsFileName];
  for (const name of shards) await fetchFile(name);
  const hash = createHash("sha256");
  for (const [name, { sha256 }] of fetched) hash.update(`${sha256}  ${name}\n`);
  const bytes = fetched.reduce((sum, [, file]) => sum + file.bytes, 0);
  return { path: path.join(folder, configFileName), bytes, sha256: hash.digest("hex") };
}
