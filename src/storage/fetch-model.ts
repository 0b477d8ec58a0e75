import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../contract/errors.ts";
import type { ModelReference } from "../contract/model.ts";
import type { BlobFiles } from "./blob-store.ts";
import { download } from "./download.ts";
import { systemErrorCode } from "./file-error.ts";

export interface FetchLimits {
  readonly maxModelBytes: number;
  /** Folders under which `file://` sources may lie. */
  readonly allowedRoots: readonly string[];
  /** Whether `http://` sources and hosts that are not on the public internet are allowed. */
  readonly allowPrivateAddresses: boolean;
}

export interface FetchOptions {
  readonly blobs: BlobFiles;
  /** Where a file that is not on this machine yet is put; must not exist. */
  readonly path: string;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
  /** `total` is undefined where the source does not say it. */
  onProgress(bytes: number, total: number | undefined): void;
}

export interface FetchedModel {
  /** `file://` models stay where they are, beside their external data. */
  readonly path: string;
  /** Of the file alone, without external data. */
  readonly bytes: number;
  readonly sha256: string;
}

/** Makes a model a file on this machine and holds it against its pinned hash and the size limit. */
export async function fetchModel(
  reference: Pick<ModelReference, "source" | "sha256">,
  options: FetchOptions,
): Promise<FetchedModel> {
  const fetched = await fetchSource(reference.source, options);
  if (reference.sha256 !== undefined && fetched.sha256 !== reference.sha256) {
    throw new ServiceError(
      "model_checksum_mismatch",
      `The file has SHA-256 ${fetched.sha256}, expected ${reference.sha256}`,
    );
  }
  return fetched;
}

async function fetchSource(source: string, options: FetchOptions): Promise<FetchedModel> {
  if (source.startsWith("file:")) return hashAllowedFile(source, options);
  if (source.startsWith("upload:sha256:"))
    return materializeUpload(source.slice("upload:sha256:".length), options);
  if (!URL.canParse(source))
    throw new ServiceError("model_source_refused", `"${source}" is not a URL`);
  const { maxModelBytes: maxBytes, allowPrivateAddresses } = options.limits;
  const fetched = await download(source, { ...options, maxBytes, allowPrivateAddresses });
  return { path: options.path, ...fetched };
}

async function materializeUpload(sha256: string, options: FetchOptions): Promise<FetchedModel> {
  const found = await options.blobs.find(sha256);
  if (found === undefined)
    throw new ServiceError("model_not_found", `No file with SHA-256 ${sha256} was uploaded`);
  checkFetchedSize(found.bytes, options.limits.maxModelBytes);
  await options.blobs.materialize(sha256, options.path, options.signal);
  return { path: options.path, bytes: found.bytes, sha256 };
}

async function hashAllowedFile(source: string, options: FetchOptions): Promise<FetchedModel> {
  const file = await resolveAllowedPath(source, options.limits.allowedRoots);
  const found = await stat(file);
  if (!found.isFile()) throw new ServiceError("model_source_refused", `"${source}" is not a file`);
  checkFetchedSize(found.size, options.limits.maxModelBytes);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(file, {
    signal: options.signal,
    highWaterMark: 1 << 20,
  })) {
    hash.update(chunk);
    bytes += chunk.length;
    options.onProgress(bytes, found.size);
  }
  return { path: file, bytes, sha256: hash.digest("hex") };
}

/**
 * The real path of a `file://` source under an allowed folder. A path outside is refused before the disk is asked, so
 * that answers do not tell which files exist, and again after links are resolved.
 */
export async function resolveAllowedPath(
  source: string,
  allowedRoots: readonly string[],
): Promise<string> {
  const named = parseFileUrl(source);
  const roots = await Promise.all(allowedRoots.map(async (root) => realPathOrUndefined(root)));
  const real = roots.filter((root) => root !== undefined);
  if (![...allowedRoots, ...real].some((root) => isPathWithin(root, named)))
    throw outsideRootsError(source, allowedRoots);
  const file = await realPathOrUndefined(named);
  if (file === undefined) throw new ServiceError("model_not_found", `"${source}" does not exist`);
  if (!real.some((root) => isPathWithin(root, file))) throw outsideRootsError(source, allowedRoots);
  return file;
}

/** Refuses a `file://` source whose path is not under an allowed folder, without asking the disk. */
export function checkAllowedPath(source: string, allowedRoots: readonly string[]): void {
  const named = parseFileUrl(source);
  if (!allowedRoots.some((root) => isPathWithin(root, named)))
    throw outsideRootsError(source, allowedRoots);
}

function isPathWithin(root: string, file: string): boolean {
  const relative = path.relative(root, file);
  return (
    relative !== "" &&
    relative !== ".." &&
    !relative.startsWith(`..${path.sep}`) &&
    !path.isAbsolute(relative)
  );
}

function parseFileUrl(source: string): string {
  const url = URL.parse(source);
  if (url === null || url.host !== "" || /%2f|%5c|%00/i.test(url.pathname)) {
    throw invalidFileUrlError(source);
  }
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw invalidFileUrlError(source, cause);
  }
}

function invalidFileUrlError(source: string, cause?: unknown): ServiceError {
  return new ServiceError(
    "model_source_refused",
    `"${source}" does not name a file on this machine`,
    { cause },
  );
}

async function realPathOrUndefined(file: string): Promise<string | undefined> {
  try {
    return await realpath(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"].includes(systemErrorCode(error)))
      return undefined;
    throw error;
  }
}

function outsideRootsError(source: string, allowedRoots: readonly string[]): ServiceError {
  const allowed =
    allowedRoots.length === 0
      ? "this service allows no file:// models"
      : `allowed are ${allowedRoots.map((root) => `"${root}"`).join(", ")}`;
  return new ServiceError(
    "model_source_refused",
    `"${source}" lies outside the allowed folders: ${allowed}`,
  );
}

function checkFetchedSize(bytes: number, maxModelBytes: number): void {
  if (bytes > maxModelBytes) {
    throw new ServiceError(
      "model_too_large",
      `The file has ${bytes} bytes, allowed are ${maxModelBytes}`,
    );
  }
}
