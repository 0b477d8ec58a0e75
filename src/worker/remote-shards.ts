import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { sourceBeside } from "../contract/models/model-source.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import { encodedBytes } from "../engine/checkpoints/encodings.ts";
import { locateFileHead, writeFileHead } from "../engine/checkpoints/remote-files.ts";
import {
  lengthBytes,
  readSafetensors,
  safetensorsHeadBytes,
} from "../engine/checkpoints/read-safetensors.ts";
import type { RemoteFiles } from "../engine/checkpoints/remote-files.ts";
import { copyRange, writeAllBytes } from "../model-files/file-access.ts";
import { checkFetchedSize, type FetchOptions, remoteSource } from "../storage/fetch-model.ts";
import { openRemoteFile, readRange, type RemoteFile } from "../storage/remote-file.ts";

/** A file of weights that stays where it is. */
export interface RemoteShard extends RemoteFile {
  /** Below the checkpoint's folder. */
  readonly name: string;
}

/**
 * Reads the header of a shard, in two requests, and writes what stands in for the file.
 * @param folder source of the checkpoint; @param target path that the shard would have
 * @returns the shard, and a SHA-256 of its header
 */
export async function fetchShardHead(
  folder: string,
  name: string,
  { target, options }: { readonly target: string; readonly options: FetchOptions },
): Promise<{ shard: RemoteShard; sha256: string }> {
  const remote = remoteSource(sourceBeside(folder, name), options);
  const { file, first } = await openRemoteFile(remote, lengthBytes, options);
  checkFetchedSize(file.bytes, options.limits.maxModelBytes);
  const headBytes = first.length < lengthBytes ? 0 : safetensorsHeadBytes(target, first);
  const chunks = [first];
  const rest = { offset: lengthBytes, length: headBytes - lengthBytes, of: file };
  await readRange(remote, rest, { ...options, onChunk: async (chunk) => void chunks.push(chunk) });
  const bytes = Buffer.concat(chunks);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFileHead(target, { bytes, size: file.bytes });
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { shard: { ...file, name }, sha256 };
}

export interface RemoteShards extends RemoteFiles {
  readonly shards: readonly RemoteShard[];
  /**
   * Copies all shards to where they would be in the folder.
   * @param kept parts of them that are on this machine
   * @returns bytes of the other parts, which were fetched
   */
  fetchAll(this: void, kept: readonly LocalRange[], signal: AbortSignal): Promise<number>;
}

/** A part of a shard that is in a file of this machine. */
interface LocalRange {
  /** The shard's name. */
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
  readonly path: string;
  /** Where it begins in that file. */
  readonly position: number;
}

/**
 * Reads shards by ranges.
 * @param source of the checkpoint's folder; the heads are in that of `options.path`
 */
export async function openRemoteShards(
  source: string,
  shards: readonly RemoteShard[],
  options: FetchOptions,
): Promise<RemoteShards> {
  const folder = path.dirname(options.path);
  const byPath = new Map(shards.map((shard) => [path.join(folder, shard.name), shard]));
  const directory = `${folder}-ranges`;
  await mkdir(directory);
  const fetch: RemoteFiles["fetch"] = async ({ path: file, offset, length }, to, signal) => {
    const shard = byPath.get(file);
    if (shard === undefined) throw new TypeError(`"${file}" is not elsewhere`);
    await using handle = await open(to.path, constants.O_CREAT | constants.O_WRONLY);
    let done = 0;
    const onChunk = async (chunk: Buffer) => {
      await writeAllBytes(handle, chunk, to.offset + done);
      done += chunk.length;
    };
    const remote = remoteSource(sourceBeside(source, shard.name), options);
    const wanted = { offset, length, of: shard };
    try {
      await readRange(remote, wanted, { ...options, signal, onChunk });
    } catch (error) {
      throw nameTensor(file, offset + done, error);
    }
  };
  const fetchAll: RemoteShards["fetchAll"] = async (kept, signal) => {
    let fetched = 0;
    for (const [file, { name, bytes }] of byPath) {
      const head = { ...locateFileHead(file), file: name, offset: 0, position: 0 };
      const parts = [head, ...kept.filter((range) => range.file === name)];
      for (const part of parts) await copyPart(part, file);
      for (const { offset, length } of listGaps(parts, bytes)) {
        await fetch({ path: file, offset, length }, { path: file, offset }, signal);
        fetched += length;
      }
    }
    return fetched;
  };
  return { directory, shards, fetch, fetchAll };
}

async function copyPart(
  { path: source, position, offset, bytes }: LocalRange,
  target: string,
): Promise<void> {
  await using from = await open(source);
  await using to = await open(target, constants.O_CREAT | constants.O_WRONLY);
  await copyRange({ file: from, position }, { file: to, position: offset }, bytes);
}

/** What is not in any of the parts of so many bytes. */
function listGaps(parts: readonly Pick<LocalRange, "offset" | "bytes">[], total: number) {
  const gaps: { offset: number; length: number }[] = [];
  let end = 0;
  for (const { offset, bytes } of parts.toSorted((a, b) => a.offset - b.offset)) {
    if (offset > end) gaps.push({ offset: end, length: offset - end });
    end = Math.max(end, offset + bytes);
  }
  if (total > end) gaps.push({ offset: end, length: total - end });
  return gaps;
}

/** Says of an error which tensor was read. */
function nameTensor(file: string, position: number, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const tensor = readSafetensors(file).find(({ offset, encoding, dims }) => {
    const values = dims.reduce((product, length) => product * length, 1);
    return position >= offset && position < offset + encodedBytes(encoding, values);
  });
  if (tensor === undefined) return error;
  const where = `${path.basename(file)}: tensor ${quoteName(tensor.name)}: data_offsets`;
  return new ServiceError(error.code, `${where}: ${error.message}`, { cause: error });
}
