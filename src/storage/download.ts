import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { storageError, systemErrorCode } from "./file-error.ts";
import { writeAllBytes } from "../model-files/file-access.ts";
import { PermanentDownloadError, readAnswerHeader } from "./request-source.ts";
import { ServiceError } from "../contract/errors.ts";
import { slowestDownload } from "../contract/limits.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

/** Attempts in a row that bring no new byte. */
const maxFruitlessAttempts = 4;
const firstRetryMs = 200;

interface DownloadOptions {
  /** Where the file is written; must not exist. */
  readonly path: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** By default that of the contract. */
  readonly slowest?: SlowestPace | undefined;
  /** One that several downloads keep up together; by default each has its own. */
  readonly pace?: Pace | undefined;
  onProgress(this: void, bytes: number, total: number | undefined): void;
}

/** Progress over all connections. */
interface DownloadProgress {
  bytes: number;
  hash: Hash;
  /** Version of the file, for `If-Range`; without it an interrupted download starts over. */
  validator: string | undefined;
}

/** Asks for a file, or for the rest of one: the answer has the status 200 or 206. */
export type RequestFile = (
  headers: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
) => Promise<Dispatcher.ResponseData>;

/** A file to download. */
export interface DownloadSource {
  /** For messages, without secrets. */
  readonly name: string;
  /** Finds it before each request: addresses may be valid for a while only. */
  find(this: void): Promise<RequestFile>;
}

/** Downloads a file; resumes after a lost connection. Leaves nothing behind when it fails. */
export async function download(
  source: DownloadSource,
  options: DownloadOptions,
): Promise<{ bytes: number; sha256: string }> {
  using ownPace = new DisposableStack();
  const pace = options.pace ?? ownPace.use(watchPace(source.name, options.slowest));
  const signal = AbortSignal.any([options.signal, pace.signal]);
  try {
    await using file = await open(options.path, "wx");
    return await downloadInto(file, source, { ...options, signal, pace });
  } catch (error) {
    await rm(options.path, { force: true });
    throw storageError(error);
  }
}

type AttemptOptions = DownloadOptions & { readonly pace: Pace };

async function downloadInto(file: FileHandle, source: DownloadSource, options: AttemptOptions) {
  const progress: DownloadProgress = { bytes: 0, hash: createHash("sha256"), validator: undefined };
  return tryRequests(source, { signal: options.signal, progress }, async (requestFile) => {
    await attemptDownload(file, requestFile, { progress, ...options });
    return { bytes: progress.bytes, sha256: progress.hash.digest("hex") };
  });
}

interface RequestsOptions {
  readonly signal: AbortSignal;
  /** Of all attempts together. */
  readonly progress: { readonly bytes: number };
}

/**
 * Asks for a file again after each failure, unless several in a row brought nothing.
 * @throws ServiceError model_fetch_failed, and those of `attempt`
 */
export async function tryRequests<T>(
  source: DownloadSource,
  { signal, progress }: RequestsOptions,
  attempt: (requestFile: RequestFile) => Promise<T>,
): Promise<T> {
  for (let fruitless = 1; ; fruitless++) {
    const before = progress.bytes;
    const requestFile = await source.find();
    try {
      return await attempt(requestFile);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError || storageError(error) !== error) throw error;
      if (progress.bytes > before) fruitless = 0;
      if (fruitless >= maxFruitlessAttempts || error instanceof PermanentDownloadError) {
        throw modelFetchError(source.name, error);
      }
    }
    await delay(firstRetryMs * 2 ** fruitless, undefined, { signal });
  }
}

async function attemptDownload(
  file: FileHandle,
  requestFile: RequestFile,
  { progress, ...options }: AttemptOptions & { progress: DownloadProgress },
): Promise<void> {
  const isResumed = progress.bytes > 0 && progress.validator !== undefined;
  const headers = {
    range: isResumed ? `bytes=${progress.bytes}-` : undefined,
    "if-range": isResumed ? progress.validator : undefined,
  };
  const answer = await requestFile(headers, options.signal);
  try {
    const isContinued = isResumed && answer.statusCode === 206;
    const range = readAnswerHeader(answer, "content-range");
    if (isContinued) checkRange(range, progress.bytes);
    else await restartDownload(file, progress, answer);
    await appendBody(file, answer, { progress, ...options });
    // A host may send less than the rest.
    const total = Number(/\/(\d+)$/.exec(range ?? "")?.[1]);
    if (progress.bytes < total) throw new Error(`sent ${progress.bytes} of ${total} bytes`);
  } finally {
    // Nobody listens to a body that is not read.
    answer.body.on("error", () => {}).destroy();
  }
}

async function restartDownload(
  file: FileHandle,
  progress: DownloadProgress,
  answer: Dispatcher.ResponseData,
): Promise<void> {
  if (answer.statusCode !== 200) {
    throw new PermanentDownloadError(`answered ${answer.statusCode} to a plain GET`);
  }
  requireIdentity(answer);
  await file.truncate(0);
  const etag = readAnswerHeader(answer, "etag");
  progress.bytes = 0;
  progress.hash = createHash("sha256");
  progress.validator = etag?.startsWith('"') ? etag : readAnswerHeader(answer, "last-modified");
}

/** @throws PermanentDownloadError where the bytes are not those of the file */
export function requireIdentity(answer: Dispatcher.ResponseData): void {
  const encoding = readAnswerHeader(answer, "content-encoding") ?? "identity";
  if (encoding === "identity") return;
  throw new PermanentDownloadError(`answered with content encoding "${encoding}"`);
}

function checkRange(contentRange: string | undefined, start: number): void {
  if (contentRange?.startsWith(`bytes ${start}-`)) return;
  throw new PermanentDownloadError(
    `answered a request for bytes ${start}- with range "${contentRange ?? ""}"`,
  );
}

async function appendBody(
  file: FileHandle,
  answer: Dispatcher.ResponseData,
  { progress, maxBytes, pace, onProgress }: AttemptOptions & { progress: DownloadProgress },
): Promise<void> {
  const length = Number(readAnswerHeader(answer, "content-length") ?? NaN);
  const total = Number.isNaN(length) ? undefined : progress.bytes + length;
  if (total !== undefined && total > maxBytes) throw tooLargeError(`${total} bytes`, maxBytes);
  for await (const chunk of readBodyChunks(answer.body)) {
    if (progress.bytes + chunk.length > maxBytes) throw tooLargeError("more bytes", maxBytes);
    await writeAllBytes(file, chunk, progress.bytes);
    progress.hash.update(chunk);
    progress.bytes += chunk.length;
    pace.count(chunk.length);
    onProgress(progress.bytes, total);
  }
}

export async function* readBodyChunks(body: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("Body is not a stream of bytes");
    yield chunk;
  }
}

function tooLargeError(size: string, maxBytes: number): ServiceError {
  const message = `The file has ${size}; at most ${maxBytes} are allowed`;
  return new ServiceError("model_too_large", message);
}

export function modelFetchError(name: string, cause: unknown): ServiceError {
  const message = `Cannot fetch "${name}": ${failureReason(cause)}`;
  return new ServiceError("model_fetch_failed", message, { cause });
}

export function failureReason(cause: unknown): string {
  return cause instanceof Error && cause.message !== "" ? cause.message : systemErrorCode(cause);
}

/** The fewest bytes that may arrive within a time. */
export interface SlowestPace {
  readonly bytes: number;
  readonly seconds: number;
}

export interface Pace extends Disposable {
  /** Aborted with a ServiceError model_source_slow. */
  readonly signal: AbortSignal;
  count(bytes: number): void;
}

/** Watches that a download goes on, from its first moment and over lost connections. */
export function watchPace(url: string, slowest: SlowestPace = slowestDownload): Pace {
  const abort = new AbortController();
  let bytes = 0;
  const timer = setInterval(() => {
    if (bytes < slowest.bytes) abort.abort(slowSourceError(url, bytes, slowest));
    bytes = 0;
  }, slowest.seconds * 1000).unref();
  return {
    signal: abort.signal,
    count: (more) => {
      bytes += more;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function slowSourceError(url: string, bytes: number, { seconds, bytes: least }: SlowestPace) {
  const arrived = `${formatBytes(bytes)} of "${url}" arrived within ${seconds} s`;
  return new ServiceError("model_source_slow", `${arrived}; the least is ${formatBytes(least)}`);
}
