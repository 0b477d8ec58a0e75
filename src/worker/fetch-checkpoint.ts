import { createHash } from "node:crypto";
import { symlink } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { isRemoteSource, sourceBeside } from "../contract/models/model-source.ts";
import { carriedFileNames } from "../engine/language/language-files.ts";
import { configFileName } from "../engine/language/open-language-model.ts";
import {
  indexFileName,
  readShardNames,
  weightsFileName,
} from "../engine/language/read-folder-tensors.ts";
import type { Pace } from "../storage/download.ts";
import { type FetchedModel, fetchModel, type FetchOptions } from "../storage/fetch-model.ts";
import { isAccessRefusal } from "../storage/request-source.ts";
import {
  fetchShardHead,
  openRemoteShards,
  type RemoteShard,
  type RemoteShards,
} from "./remote-shards.ts";

export interface FetchedCheckpoint extends FetchedModel {
  /** The files of weights that were not copied. */
  readonly remote?: RemoteShards | undefined;
}

interface CheckpointOptions extends FetchOptions {
  readonly pace: Pace;
  /** Whether weights of other machines stay there, to be read by ranges. */
  readonly readsRanges: boolean;
}

/**
 * Makes the folder of a language model one on this machine: its configuration, its weights or their
 * headers, and the files of its tokenizer. Files of this machine stay where they are, behind links.
 * @param source of the folder, which ends with "/"
 * @returns the path of `config.json`, all files' bytes, and a SHA-256 of their names and contents;
 * of weights that are read by ranges it has size, version and header instead of the content
 * @throws ServiceError as `fetchModel()` does, for all files together
 */
export async function fetchCheckpoint(
  source: string,
  { pace, readsRanges, ...options }: CheckpointOptions,
): Promise<FetchedCheckpoint> {
  const folder = path.dirname(options.path);
  const hash = createHash("sha256");
  const remoteShards: RemoteShard[] = [];
  let bytes = 0;
  const count = (more: number, line: string) => {
    bytes += more;
    hash.update(`${line}\n`);
  };
  const limit = () => {
    const maxModelBytes = options.limits.maxModelBytes - bytes;
    return { ...options.limits, maxModelBytes };
  };
  const fetchFile = async (name: string) => {
    const target = path.join(folder, name);
    const reference = { source: sourceBeside(source, name) };
    const file = await fetchModel(reference, { ...options, path: target, limits: limit(), pace });
    if (file.path !== target) await symlink(file.path, target);
    count(file.bytes, `${file.sha256}  ${name}`);
  };
  const fetchHead = async (name: string) => {
    const target = path.join(folder, name);
    const { shard, sha256 } = await fetchShardHead(source, name, {
      target,
      options: { ...options, limits: limit() },
    });
    remoteShards.push(shard);
    count(shard.bytes, `${sha256} ${shard.bytes} ${shard.version ?? ""}  ${name}`);
  };
  const fetchOptional = async (name: string) => {
    try {
      await fetchFile(name);
      return true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === "model_not_found" || isAccessRefusal(error)) return false;
      throw error;
    }
  };
  await fetchFile(configFileName);
  for (const name of carriedFileNames) await fetchOptional(name);
  const isSharded = await fetchOptional(indexFileName);
  const shards = isSharded ? readShardNames(path.join(folder, indexFileName)) : [weightsFileName];
  const isRanged = readsRanges && isRemoteSource(source);
  for (const name of shards) await (isRanged ? fetchHead : fetchFile)(name);
  return {
    path: path.join(folder, configFileName),
    bytes,
    sha256: hash.digest("hex"),
    remote: isRanged ? await openRemoteShards(source, remoteShards, options) : undefined,
  };
}
