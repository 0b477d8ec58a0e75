import { createHash, type Hash } from "node:crypto";
import { lookup } from "node:dns";
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, type Dispatcher, request } from "undici";
import { ServiceError } from "../contract/errors.ts";
import { systemErrorCode, storageError } from "./file-error.ts";
import { checkAddressLiteral, createPublicLookup } from "./public-address.ts";

const maxRedirects = 5;
/** Attempts in a row that bring no new byte. */
const maxFruitlessAttempts = 4;
const firstRetryMs = 200;

export interface DownloadOptions {
  /** Where the file is put; must not exist. */
  readonly path: string;
  readonly maxBytes: number;
  /** Whether `http:` and hosts that are not on the public internet are allowed. */
  readonly allowPrivateAddresses: boolean;
  readonly signal: AbortSignal;
  onProgress(bytes: number, total: number | undefined): void;
}

/** What has been downloaded, through however many connections. */
interface DownloadProgress {
  bytes: number;
  hash: Hash;
  /** Names the version of the file, for `If-Range`; without it a cut download starts over. */
  validator: string | undefined;
}

/** Downloads a file, resuming where a connection is cut. Leaves nothing behind when it fails. */
export async function download(
  url: string,
  options: DownloadOptions,
): Promise<{ bytes: number; sha256: string }> {
  const agent = new Agent({
    connect: {
      timeout: 10_000,
      ...(!options.allowPrivateAddresses && { lookup: createPublicLookup(lookup) }),
    },
    headersTimeout: 30_000,
    bodyTimeout: 60_000,
  });
  try {
    await using file = await open(options.path, "wx");
    return await downloadInto(file, url, { ...options, agent });
  } catch (error) {
    await rm(options.path, { force: true });
    throw storageError(error);
  } finally {
    await agent.destroy();
  }
}

type AttemptOptions = DownloadOptions & { readonly agent: Agent };

async function downloadInto(file: FileHandle, url: string, options: AttemptOptions) {
  const progress: DownloadProgress = { bytes: 0, hash: createHash("sha256"), validator: undefined };
  for (let fruitless = 1; ; fruitless++) {
    const before = progress.bytes;
    try {
      await attemptDownload(file, url, { progress, ...options });
      return { bytes: progress.bytes, sha256: progress.hash.digest("hex") };
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof ServiceError || storageError(error) !== error) throw error;
      if (progress.bytes > before) fruitless = 0;
      if (fruitless >= maxFruitlessAttempts || error instanceof PermanentDownloadError)
        throw modelFetchError(url, error);
    }
    await delay(firstRetryMs * 2 ** fruitless, undefined, { signal: options.signal });
  }
}

/** An answer that another attempt would get again. */
class PermanentDownloadError extends Error {}

async function attemptDownload(
  file: FileHandle,
  url: string,
  { progress, ...options }: AttemptOptions & { progress: DownloadProgress },
): Promise<void> {
  const isResumed = progress.bytes > 0 && progress.validator !== undefined;
  const answer = await followRedirects(url, options, {
    "accept-encoding": "identity",
    ...(isResumed && { range: `bytes=${progress.bytes}-`, "if-range": progress.validator }),
  });
  const isContinued = isResumed && answer.statusCode === 206;
  if (isContinued) checkRange(readAnswerHeader(answer, "content-range"), progress.bytes);
  else await restartDownload(file, progress, answer);
  const length = Number(readAnswerHeader(answer, "content-length") ?? NaN);
  const total = Number.isNaN(length) ? undefined : progress.bytes + length;
  if (total !== undefined && total > options.maxBytes)
    throw modelTooLargeError(`${total} bytes`, options.maxBytes);
  for await (const chunk of readBodyChunks(answer.body)) {
    if (progress.bytes + chunk.length > options.maxBytes)
      throw modelTooLargeError("more", options.maxBytes);
    await writeAll(file, chunk, progress.bytes);
    progress.hash.update(chunk);
    progress.bytes += chunk.length;
    options.onProgress(progress.bytes, total);
  }
}

async function restartDownload(
  file: FileHandle,
  progress: DownloadProgress,
  answer: Dispatcher.ResponseData,
): Promise<void> {
  if (answer.statusCode !== 200)
    throw new PermanentDownloadError(`answered ${answer.statusCode} to a plain GET`);
  const encoding = readAnswerHeader(answer, "content-encoding") ?? "identity";
  if (encoding !== "identity")
    throw new PermanentDownloadError(`answered with content encoding "${encoding}"`);
  await file.truncate(0);
  const etag = readAnswerHeader(answer, "etag");
  Object.assign(progress, {
    bytes: 0,
    hash: createHash("sha256"),
    validator: etag?.startsWith('"') ? etag : readAnswerHeader(answer, "last-modified"),
  } satisfies DownloadProgress);
}

function checkRange(contentRange: string | undefined, start: number): void {
  if (contentRange?.startsWith(`bytes ${start}-`)) return;
  throw new PermanentDownloadError(
    `answered a request for bytes ${start}- with range "${contentRange ?? ""}"`,
  );
}

/** Follows redirects by hand: each hop's address is checked like the first one's. */
async function followRedirects(
  first: string,
  options: AttemptOptions,
  headers: Record<string, string | undefined>,
) {
  let url = new URL(first);
  for (let hop = 0; hop <= maxRedirects; hop++) {
    checkUrl(url, options.allowPrivateAddresses);
    const answer = await request(url, {
      dispatcher: options.agent,
      headers,
      signal: options.signal,
    });
    const location = readAnswerHeader(answer, "location");
    const isRedirect =
      [301, 302, 303, 307, 308].includes(answer.statusCode) && location !== undefined;
    if (!isRedirect) {
      await checkAnswerStatus(answer, url);
      return answer;
    }
    await answer.body.dump();
    if (!URL.canParse(location, url.href))
      throw new PermanentDownloadError(`redirects to "${location}", which is not a URL`);
    url = new URL(location, url);
  }
  throw new PermanentDownloadError(`redirects more than ${maxRedirects} times`);
}

export function checkUrl(url: URL, allowPrivateAddresses: boolean): void {
  if (url.protocol !== "https:" && !(url.protocol === "http:" && allowPrivateAddresses)) {
    throw new ServiceError(
      "model_source_refused",
      `"${stripUrlSecrets(url)}" must be an https:// address`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new ServiceError(
      "model_source_refused",
      `"${stripUrlSecrets(url)}" must not hold a user name or password`,
    );
  }
  if (!allowPrivateAddresses) checkAddressLiteral(url.hostname);
}

async function checkAnswerStatus(answer: Dispatcher.ResponseData, url: URL): Promise<void> {
  const { statusCode } = answer;
  if (statusCode === 200 || statusCode === 206) return;
  await answer.body.dump();
  if (statusCode === 404 || statusCode === 410) {
    throw new ServiceError(
      "model_not_found",
      `"${stripUrlSecrets(url)}" does not exist: the host answered ${statusCode}`,
    );
  }
  if (statusCode === 429 || statusCode >= 500) throw new Error(`the host answered ${statusCode}`);
  throw new PermanentDownloadError(`the host answered ${statusCode}`);
}

/** Signed URLs carry their secret in the query. */
function stripUrlSecrets(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

function readAnswerHeader(answer: Dispatcher.ResponseData, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function* readBodyChunks(body: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("Body is not a stream of bytes");
    yield chunk;
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

function modelTooLargeError(size: string, maxBytes: number): ServiceError {
  return new ServiceError("model_too_large", `The file has ${size}, allowed are ${maxBytes}`);
}

function modelFetchError(url: string, cause: unknown): ServiceError {
  const reason =
    cause instanceof Error && cause.message !== "" ? cause.message : systemErrorCode(cause);
  return new ServiceError(
    "model_fetch_failed",
    `Cannot fetch "${stripUrlSecrets(new URL(url))}": ${reason}`,
    { cause },
  );
}
