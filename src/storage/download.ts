import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type Dispatcher, request } from "undici";
import { type Connections, openConnections } from "./connections.ts";
import { storageError, systemErrorCode } from "./file-error.ts";
import { checkUrl } from "./public-address.ts";
import { writeAllBytes } from "../model-files/file-access.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";
import { ServiceError } from "../contract/errors.ts";
import type { LocatedSource } from "../contract/jobs/worker-transfers.ts";
import { slowestDownload } from "../contract/limits.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

/** Attempts in a row that bring no new byte. */
const maxFruitlessAttempts = 4;
const firstRetryMs = 200;

interface DownloadOptions {
  /** Where the file is written; must not exist. */
  readonly path: string;
  readonly maxBytes: number;
  /** Whether `http:` and hosts that are not on the public internet are allowed. */
  readonly allowPrivateAddresses: boolean;
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

/** A file to download. */
interface DownloadSource {
  /** For messages, without secrets. */
  readonly name: string;
  /** Where it is now: addresses may be valid for a while only. Asked before each connection. */
  locate(this: void): Promise<LocatedSource>;
}

/** Downloads a file; resumes after a lost connection. Leaves nothing behind when it fails. */
export async function download(
  source: DownloadSource,
  options: DownloadOptions,
): Promise<{ bytes: number; sha256: string }> {
  await using connections = openConnections(options);
  using ownPace = new DisposableStack();
  const pace = options.pace ?? ownPace.use(watchPace(source.name, options.slowest));
  const signal = AbortSignal.any([options.signal, pace.signal]);
  try {
    await using file = await open(options.path, "wx");
    return await downloadInto(file, source, { ...options, signal, connections, pace });
  } catch (error) {
    await rm(options.path, { force: true });
    throw storageError(error);
  }
}

type AttemptOptions = DownloadOptions & { readonly connections: Connections; readonly pace: Pace };

async function downloadInto(file: FileHandle, source: DownloadSource, options: AttemptOptions) {
  const { signal } = options;
  const progress: DownloadProgress = { bytes: 0, hash: createHash("sha256"), validator: undefined };
  for (let fruitless = 1; ; fruitless++) {
    const before = progress.bytes;
    const located = await source.locate();
    try {
      await attemptDownload(file, located, { progress, ...options });
      return { bytes: progress.bytes, sha256: progress.hash.digest("hex") };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ServiceError || storageError(error) !== error) throw error;
      if (progress.bytes > before) fruitless = 0;
      if (fruitless >= maxFruitlessAttempts || error instanceof PermanentDownloadError) {
        throw modelFetchError(source, error);
      }
    }
    await delay(firstRetryMs * 2 ** fruitless, undefined, { signal });
  }
}

async function attemptDownload(
  file: FileHandle,
  located: LocatedSource,
  { progress, ...options }: AttemptOptions & { progress: DownloadProgress },
): Promise<void> {
  const isResumed = progress.bytes > 0 && progress.validator !== undefined;
  const headers = {
    "accept-encoding": "identity",
    range: isResumed ? `bytes=${progress.bytes}-` : undefined,
    "if-range": isResumed ? progress.validator : undefined,
  };
  const answer = await followRedirects(located, { ...options, headers });
  const isContinued = isResumed && answer.statusCode === 206;
  if (isContinued) checkRange(readAnswerHeader(answer, "content-range"), progress.bytes);
  else await restartDownload(file, progress, answer);
  await appendBody(file, answer, { progress, ...options });
}

async function restartDownload(
  file: FileHandle,
  progress: DownloadProgress,
  answer: Dispatcher.ResponseData,
): Promise<void> {
  if (answer.statusCode !== 200) {
    throw new PermanentDownloadError(`answered ${answer.statusCode} to a plain GET`);
  }
  const encoding = readAnswerHeader(answer, "content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new PermanentDownloadError(`answered with content encoding "${encoding}"`);
  }
  await file.truncate(0);
  const etag = readAnswerHeader(answer, "etag");
  progress.bytes = 0;
  progress.hash = createHash("sha256");
  progress.validator = etag?.startsWith('"') ? etag : readAnswerHeader(answer, "last-modified");
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
    if (progress.bytes + chunk.length > maxBytes) throw tooLargeError("more", maxBytes);
    await writeAllBytes(file, chunk, progress.bytes);
    progress.hash.update(chunk);
    progress.bytes += chunk.length;
    pace.count(chunk.length);
    onProgress(progress.bytes, total);
  }
}

async function* readBodyChunks(body: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("Body is not a stream of bytes");
    yield chunk;
  }
}

function tooLargeError(size: string, maxBytes: number): ServiceError {
  return new ServiceError("model_too_large", `The file has ${size}, allowed are ${maxBytes}`);
}

function modelFetchError({ name }: DownloadSource, cause: unknown): ServiceError {
  const reason =
    cause instanceof Error && cause.message !== "" ? cause.message : systemErrorCode(cause);
  const message = `Cannot fetch "${name}": ${reason}`;
  return new ServiceError("model_fetch_failed", message, { cause });
}

const maxRedirects = 5;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** An answer that another attempt would get again. */
class PermanentDownloadError extends Error {}

interface RedirectOptions {
  readonly connections: Connections;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly allowPrivateAddresses: boolean;
  readonly signal: AbortSignal;
}

/**
 * Requests a file. Follows redirects itself, to check each address like the first. Another origin
 * gets no headers of the source and is not trusted.
 */
async function followRedirects(
  source: LocatedSource,
  { connections, headers, allowPrivateAddresses, signal }: RedirectOptions,
): Promise<Dispatcher.ResponseData> {
  const first = new URL(source.url);
  let url = first;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const isOrigin = url.origin === first.origin;
    const isTrusted = isOrigin && source.isTrusted;
    checkUrl(url, isTrusted || allowPrivateAddresses);
    const answer = await request(url, {
      dispatcher: isTrusted ? connections.trusted : connections.strangers,
      headers: isOrigin ? { ...source.headers, ...headers } : headers,
      signal,
    });
    const location = readAnswerHeader(answer, "location");
    if (!redirectStatuses.has(answer.statusCode) || location === undefined) {
      await checkAnswerStatus(answer, url);
      return answer;
    }
    await answer.body.dump();
    if (!URL.canParse(location, url.href)) {
      throw new PermanentDownloadError(`redirects to "${location}", which is not a URL`);
    }
    url = new URL(location, url);
  }
  throw new PermanentDownloadError(`redirects more than ${maxRedirects} times`);
}

export function readAnswerHeader(
  answer: Pick<Dispatcher.ResponseData, "headers">,
  name: string,
): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function checkAnswerStatus(answer: Dispatcher.ResponseData, url: URL): Promise<void> {
  const { statusCode } = answer;
  if (statusCode === 200 || statusCode === 206) return;
  await answer.body.dump();
  const message = `the host answered ${statusCode}`;
  if (statusCode === 404 || statusCode === 410) {
    const source = stripUrlSecrets(url);
    throw new ServiceError("model_not_found", `"${source}" does not exist: ${message}`);
  }
  if (statusCode === 429 || statusCode >= 500) throw new Error(message);
  throw new PermanentDownloadError(message);
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
