import { stat } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";
import type { ModelReference } from "../contract/models/model.ts";
import { isLocatedSource, missingUploadError } from "../contract/models/model-source.ts";
import type { LocatedSource } from "../contract/worker-protocol/transfers.ts";
import { resolveAllowedPath } from "./allowed-path.ts";
import type { BlobFiles } from "./blob-store.ts";
import {
  download,
  type DownloadSource,
  type Pace,
  type RequestFile,
  type SlowestPace,
} from "./download.ts";
import { hashStoredFile } from "./hash-stored-file.ts";
import { requestSource } from "./request-source.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";

export interface FetchLimits {
  readonly maxModelBytes: number;
  /** Folders under which `file://` sources may lie. */
  readonly allowedRoots: readonly string[];
  /** Whether `http://` sources and hosts that are not on the public internet are allowed. */
  readonly allowPrivateAddresses: boolean;
}

export type RequestFromService = (
  source: string,
  ...asked: Parameters<RequestFile>
) => ReturnType<RequestFile>;

export interface FetchOptions {
  readonly blobs: BlobFiles;
  /** Where a file that is not on this machine yet is written; must not exist. */
  readonly path: string;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
  /** Where the service says that an `s3://`, `gs://` or `hf://` source is. */
  locateSource(this: void, source: string): Promise<LocatedSource>;
  /** Asks the service for the content of a source, where the worker has no network. */
  readonly requestFromService?: RequestFromService | undefined;
  /** By default that of the contract. */
  readonly slowest?: SlowestPace;
  /** One that several files keep up together; by default each has its own. */
  readonly pace?: Pace;
  /** `total` is undefined where the source does not state it. */
  onProgress(this: void, bytes: number, total: number | undefined): void;
}

export interface FetchedModel {
  /** `file://` models stay where they are, beside their external data. */
  readonly path: string;
  /** Of the file alone, without external data. */
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Makes a model a file on this machine.
 * @throws ServiceError where the source is refused or cannot be fetched, or the file is larger than
 * allowed or has not the pinned SHA-256
 */
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
  if (source.startsWith("upload:sha256:")) {
    return materializeUpload(source.slice("upload:sha256:".length), options);
  }
  const { maxModelBytes: maxBytes } = options.limits;
  const fetched = await download(remoteSource(source, options), { ...options, maxBytes });
  return { path: options.path, ...fetched };
}

/** A source that is neither an upload nor on this machine. */
export function remoteSource(source: string, options: FetchOptions): DownloadSource {
  return { name: stripUrlSecrets(source), find: async () => findSource(source, options) };
}

async function findSource(source: string, options: FetchOptions): Promise<RequestFile> {
  const { requestFromService, limits } = options;
  if (requestFromService) return (...asked) => requestFromService(source, ...asked);
  const located = await locateSource(source, options.locateSource);
  return (headers, signal) => requestSource(located, { ...limits, headers, signal });
}

/** Where a source of the network is read, with its credentials. */
export async function locateSource(
  source: string,
  locateWithCredentials: FetchOptions["locateSource"],
): Promise<LocatedSource> {
  if (isLocatedSource(source)) return locateWithCredentials(source);
  return { url: source, headers: {}, isTrusted: false };
}

async function materializeUpload(
  sha256: string,
  { blobs, path, limits, signal }: FetchOptions,
): Promise<FetchedModel> {
  const blob = await blobs.find(sha256);
  if (blob === undefined) throw missingUploadError(sha256);
  checkFetchedSize(blob.bytes, limits.maxModelBytes);
  await blobs.materialize(sha256, path, signal);
  return { path, bytes: blob.bytes, sha256 };
}

async function hashAllowedFile(source: string, options: FetchOptions): Promise<FetchedModel> {
  const { limits, signal, onProgress } = options;
  const { path, bytes: size } = await locateAllowedFile(source, limits);
  const hashed = await hashStoredFile(path, {
    signal,
    onProgress: (bytes) => onProgress(bytes, size),
  });
  return { path, ...hashed };
}

/** The file of a `file://` source, which is not read. @throws ServiceError as fetchModel does */
export async function locateAllowedFile(
  source: string,
  { allowedRoots, maxModelBytes }: Pick<FetchLimits, "allowedRoots" | "maxModelBytes">,
): Promise<Pick<FetchedModel, "path" | "bytes">> {
  const path = await resolveAllowedPath(source, allowedRoots);
  const stats = await stat(path);
  if (!stats.isFile()) throw new ServiceError("model_source_refused", `"${source}" is not a file`);
  checkFetchedSize(stats.size, maxModelBytes);
  return { path, bytes: stats.size };
}

/** @throws ServiceError model_too_large */
export function checkFetchedSize(bytes: number, maxModelBytes: number): void {
  if (bytes <= maxModelBytes) return;
  const message = `The file has ${bytes} bytes; at most ${maxModelBytes} are allowed`;
  throw new ServiceError("model_too_large", message);
}
