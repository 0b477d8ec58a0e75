import { copyFile, constants, lstat, mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { type ModelFile, modelFilePath } from "../contract/models/manifest.ts";
import {
  isFolderSource,
  isRemoteSource,
  sourceBeside,
  uploadSource,
} from "../contract/models/model-source.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import type { Assignment } from "../contract/worker-protocol/messages.ts";
import { listExternalData } from "../model-files/list-external-data.ts";
import { locationPath } from "../model-files/location-path.ts";
import { type FetchedModel, fetchModel, type FetchOptions } from "../storage/fetch-model.ts";
import { stripUrlSecrets } from "../storage/strip-url-secrets.ts";
import { type Pace, watchPace } from "../storage/download.ts";
import { fetchCheckpoint, type FetchedCheckpoint } from "./fetch-checkpoint.ts";

/** What each file counts for at the pace besides its bytes: each takes requests of its own. */
const countedPerFile = 64 * 1024;

/** A model on this machine. */
export interface FetchedFiles extends FetchedCheckpoint {
  /** Files of external data that were fetched with it, below its folder. */
  readonly external: readonly ModelFile[];
}

/**
 * Fetches a model with its external data: what a manifest names, or what lies beside the model at
 * its source.
 * @throws ServiceError as `fetchModel()` does, for all files together; external_data_missing,
 * external_data_unused, external_data_refused
 */
export async function fetchModelFiles(
  { files, ...reference }: Assignment["model"],
  { readsRanges = false, ...options }: FetchOptions & { readonly readsRanges?: boolean },
): Promise<FetchedFiles> {
  if (files !== undefined) return fetchManifest(files, reference.sha256, options);
  if (isFolderSource(reference.source)) {
    using pace = watchPace(stripUrlSecrets(reference.source), options.slowest);
    const checkpoint = await fetchCheckpoint(reference.source, { ...options, pace, readsRanges });
    checkFolderSha256(checkpoint.sha256, reference.sha256);
    return { ...checkpoint, external: [] };
  }
  if (!isRemoteSource(reference.source)) {
    return { ...(await fetchModel(reference, options)), external: [] };
  }
  using pace = watchPace(stripUrlSecrets(reference.source), options.slowest);
  const model = await fetchModel(reference, { ...options, pace });
  return { ...model, external: await fetchFilesBeside(model, reference.source, options, pace) };
}

function checkFolderSha256(found: string, expected: string | undefined): void {
  if (expected === undefined || expected === found) return;
  const message = `The folder has SHA-256 ${found}, expected ${expected}`;
  throw new ServiceError("model_checksum_mismatch", message);
}

async function fetchManifest(
  [onnxFile, ...external]: readonly ModelFile[],
  sha256: string | undefined,
  options: FetchOptions,
): Promise<FetchedFiles> {
  if (onnxFile === undefined) throw new TypeError("A manifest names no file");
  const folder = path.dirname(options.path);
  const fetching = { ...options, path: path.join(folder, onnxFile.path) };
  await mkdir(path.dirname(fetching.path), { recursive: true });
  const reference = { source: uploadSource(onnxFile.sha256), sha256 };
  const model = await fetchModel(reference, fetching);
  checkNames(listExternalData(model.path), onnxFile.path, external);
  if (external.length > 0) await separateFile(model.path);
  await fetchStoredFiles(external, folder, options);
  const onnxFolder = path.posix.dirname(onnxFile.path);
  const fromModel = (file: ModelFile) => path.posix.relative(onnxFolder, file.path);
  return { ...model, external: external.map((file) => ({ ...file, path: fromModel(file) })) };
}

/** A manifest names exactly the files that the model refers to. */
function checkNames(
  locations: readonly string[],
  onnxPath: string,
  external: readonly ModelFile[],
): void {
  const named = new Set(external.map((file) => file.path));
  const folder = path.posix.dirname(onnxPath);
  const wanted = locations.map((location) => path.posix.join(folder, location));
  const missing = wanted.find((file) => !named.has(file));
  if (missing !== undefined) {
    const message = `The manifest does not name ${quoteName(missing)}, which the model refers to`;
    throw new ServiceError("external_data_missing", message);
  }
  const unused = external.find((file) => !wanted.includes(file.path));
  if (unused === undefined) return;
  const message = `The model does not refer to ${quoteName(unused.path)}, which the manifest names`;
  throw new ServiceError("external_data_unused", message);
}

/** Places blobs below a folder. */
export async function fetchStoredFiles(
  files: readonly ModelFile[],
  folder: string,
  { blobs, limits, signal }: Pick<FetchOptions, "blobs" | "signal"> & FilesLimit,
): Promise<void> {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  checkFilesBytes(bytes, limits.maxModelBytes);
  for (const { path: name, sha256 } of files) {
    const target = path.join(folder, name);
    await mkdir(path.dirname(target), { recursive: true });
    await blobs.materialize(sha256, target, signal);
    await separateFile(target);
  }
}

interface FilesLimit {
  readonly limits: { readonly maxModelBytes: number };
}

function checkFilesBytes(bytes: number, maxModelBytes: number): void {
  if (bytes <= maxModelBytes) return;
  const message = `The external data has ${bytes} bytes; at most ${maxModelBytes} are allowed`;
  throw new ServiceError("model_too_large", message);
}

/** Makes a link to a blob a file of its own: external data must not lead out of its folder. */
async function separateFile(file: string): Promise<void> {
  const stats = await lstat(file);
  if (stats.isFile() && stats.nlink === 1) return;
  const copy = `${file}.copy`;
  await copyFile(file, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await rm(file);
  await rename(copy, file);
}

async function fetchFilesBeside(
  model: FetchedModel,
  source: string,
  options: FetchOptions,
  pace: Pace,
): Promise<ModelFile[]> {
  const folder = path.dirname(model.path);
  const external: ModelFile[] = [];
  let left = options.limits.maxModelBytes - model.bytes;
  for (const location of listExternalData(model.path)) {
    const name = parseLocation(location, path.basename(model.path));
    const target = path.join(folder, name);
    await mkdir(path.dirname(target), { recursive: true });
    const limits = { ...options.limits, maxModelBytes: left };
    const reference = { source: sourceBeside(source, name) };
    const { bytes, sha256 } = await fetchModel(reference, {
      ...options,
      path: target,
      limits,
      pace,
    });
    pace.count(countedPerFile);
    external.push({ path: name, bytes, sha256 });
    left -= bytes;
  }
  return external;
}

/** @throws ServiceError external_data_refused where a location is not a path below the folder */
function parseLocation(location: string, modelName: string): string {
  const { success, data } = modelFilePath.safeParse(locationPath(location));
  if (success && data !== modelName) return data;
  const message = `External data location ${quoteName(location)} cannot be fetched`;
  throw new ServiceError("external_data_refused", message);
}
