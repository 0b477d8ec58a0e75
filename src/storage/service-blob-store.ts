import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { Agent, type Dispatcher, request } from "undici";
import { z } from "zod";
import type { Blob, BlobFiles, BlobRange } from "./blob-store.ts";
import { storageError } from "./file-error.ts";
import { hashStoredFile } from "./hash-stored-file.ts";
import { readXmlText } from "./read-xml-text.ts";
import { writeAllBytes } from "../model-files/file-access.ts";
import { readPieces } from "../model-files/read-pieces.ts";
import { readAnswerHeader } from "./request-source.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";
import { type UploadAnswer, uploadAnswer } from "../contract/worker-protocol/transfers.ts";
import { sha256 as sha256Schema } from "../contract/models/model.ts";

const storedBlob = z.object({ sha256: sha256Schema, bytes: z.int() });

interface UploadOptions {
  readonly expectedSha256?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The service's store, for workers: those on its machine only write by it. */
export function createServiceBlobStore(requestService: RequestService): BlobFiles {
  return {
    find: (sha256) => findBlob(requestService, sha256),

    async materialize(sha256, path, signal) {
      try {
        await using file = await open(path, "wx");
        await downloadBlob(file, sha256, { requestService, signal });
      } catch (error) {
        await rm(path, { force: true });
        throw storageError(error);
      }
    },

    async materializeRanges(sha256, path, { ranges, signal }) {
      await using file = await open(path, "r+");
      for (const range of ranges) {
        await downloadRange(file, sha256, { range, requestService, signal });
      }
    },

    writeFile: (path, options = {}) => storeFile(requestService, path, options),
  };
}

async function findBlob(requestService: RequestService, sha256: string) {
  return requestService({
    method: "HEAD",
    path: `/blobs/${sha256}`,
    statuses: [200, 404],
    async readAnswer({ statusCode, headers, body }) {
      await body.dump();
      if (statusCode === 404) return undefined;
      return { bytes: z.coerce.number().int().parse(headers["content-length"]) };
    },
  });
}

async function storeFile(
  requestService: RequestService,
  path: string,
  { expectedSha256, signal }: UploadOptions,
): Promise<Blob> {
  const sha256 = expectedSha256 ?? (await hashStoredFile(path, { signal })).sha256;
  const { size: bytes } = await stat(path);
  const file = { ...openContent(path, signal), blob: { sha256, bytes }, signal };
  const to = await sendToStorage(requestService, file);
  if (to === "nobody") return file.blob;
  const sent = to === "service" ? putRequest(file) : confirmRequest(file);
  const stored = await requestService({
    ...sent,
    signal,
    readAnswer: async ({ body }) => storedBlob.parse(await body.json()),
  });
  checkStoredBlob(stored, file.blob);
  return file.blob;
}

interface SentFile {
  /** The content from its begin, for one try. */
  readonly read: () => Readable;
  /** How far the last try came, bytes. */
  readonly countTransferred: () => number;
  readonly blob: Blob;
  readonly signal: AbortSignal | undefined;
}

function openContent(path: string, signal: AbortSignal | undefined) {
  let sent = 0;
  async function* readCounted() {
    sent = 0;
    for await (const piece of readPieces(path, signal)) {
      yield piece;
      sent += piece.length;
    }
  }
  return { read: () => Readable.from(readCounted()), countTransferred: () => sent };
}

/** Asks whom to send a file to, and sends it where that is not the service. */
async function sendToStorage(
  requestService: RequestService,
  { read, countTransferred, blob: { sha256, bytes }, signal }: SentFile,
): Promise<UploadAnswer["to"]> {
  return requestService({
    method: "POST",
    path: `/blobs/${sha256}/upload`,
    headers: () => ({ "content-type": "application/json" }),
    body: () => JSON.stringify({ bytes }),
    statuses: [200],
    signal,
    countTransferred,
    async readAnswer({ body }) {
      const answer = uploadAnswer.parse(await body.json());
      if (answer.to !== "storage") return answer.to;
      const stored = await requestDirectly(answer.url, {
        method: "PUT",
        headers: { ...answer.headers, "content-length": String(bytes) },
        body: read(),
        statuses: [200],
        signal,
      });
      await stored.body.dump();
      return answer.to;
    },
  });
}

function putRequest({ read, countTransferred, blob: { sha256, bytes } }: SentFile) {
  return {
    method: "PUT",
    path: `/blobs/${sha256}`,
    headers: () => ({
      "content-type": "application/octet-stream",
      "content-length": String(bytes),
    }),
    body: read,
    statuses: [200, 201],
    countTransferred,
  } as const;
}

function confirmRequest({ blob: { sha256 } }: SentFile) {
  return { method: "POST", path: `/blobs/${sha256}/stored`, statuses: [200] } as const;
}

function checkStoredBlob(stored: Blob, sent: Blob): void {
  if (stored.sha256 === sent.sha256 && stored.bytes === sent.bytes) return;
  const received = `The service stored ${stored.bytes} bytes as ${stored.sha256}`;
  throw new Error(`${received}, and was sent ${sent.bytes} as ${sent.sha256}`);
}

/** A request of a worker to the service. */
export interface ServiceRequest<T> {
  readonly method: "DELETE" | "GET" | "HEAD" | "POST" | "PUT";
  /** Below the address of the worker's job. */
  readonly path: string;
  /** Called again at each try, as `body` is. */
  readonly headers?: () => Readonly<Record<string, string>>;
  readonly body?: () => string | Readable;
  /** Statuses of answers that `readAnswer` takes. */
  readonly statuses: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** Where it fails, the request is repeated. */
  readAnswer(this: void, answer: Dispatcher.ResponseData): Promise<T>;
  /**
   * How far the transfer has come, bytes. Where a try gets further than all before it, the time
   * limit of outages starts again.
   */
  readonly countTransferred?: () => number;
}

/** Repeats a request until it is answered, over outages of the service. */
export type RequestService = <T>(request: ServiceRequest<T>) => Promise<T>;

/** Time in which no byte is taken or sent, milliseconds. A file is answered when it is stored. */
const silenceLimitMs = { GET: 30_000, PUT: 2 * 60_000 } as const;

interface DirectRequest {
  readonly method?: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Readable;
  /** Statuses of answers that are wanted. */
  readonly statuses: readonly number[];
  readonly signal: AbortSignal | undefined;
}

/**
 * A request to an address that the service gave, without the worker's token.
 * @throws Error, without the query of the address, which is a secret
 */
async function requestDirectly(
  url: string | undefined,
  { method = "GET", headers, body, statuses, signal }: DirectRequest,
): Promise<Dispatcher.ResponseData> {
  if (url === undefined) throw new Error("The service named no address of the file");
  const agent = new Agent({
    connect: { timeout: 10_000 },
    headersTimeout: silenceLimitMs[method],
    bodyTimeout: silenceLimitMs.GET,
  });
  const answer = await request(url, {
    dispatcher: agent,
    method,
    headers,
    body: body ?? null,
    signal: signal ?? null,
  });
  answer.body.once("close", () => void agent.destroy());
  if (statuses.includes(answer.statusCode)) return answer;
  const reason = readXmlText(await answer.body.text(), "Code") ?? "no code";
  const address = stripUrlSecrets(url);
  throw new Error(`The storage answered ${answer.statusCode} to ${method} ${address} (${reason})`);
}

/** 416: the connection broke after the last byte, and nothing is left to send. */
const contentStatuses = [200, 206, 416];

interface BlobDownloadOptions {
  readonly requestService: RequestService;
  readonly signal: AbortSignal | undefined;
}

interface BlobDownloadProgress {
  bytes: number;
  hash: Hash;
}

/**
 * Downloads a blob of the service. After a broken connection it continues after the last byte that
 * was written: content that is named by its hash does not change.
 */
async function downloadBlob(
  file: FileHandle,
  sha256: string,
  { requestService, signal }: BlobDownloadOptions,
): Promise<void> {
  const progress: BlobDownloadProgress = { bytes: 0, hash: createHash("sha256") };
  await requestService({
    method: "GET",
    path: `/blobs/${sha256}`,
    headers: () => rangeHeaders(progress),
    statuses: [...contentStatuses, 307],
    signal,
    countTransferred: () => progress.bytes,
    async readAnswer(answer) {
      if (answer.statusCode !== 307) return appendAnswer(file, answer, progress);
      await answer.body.dump();
      const content = await requestDirectly(readAnswerHeader(answer, "location"), {
        headers: rangeHeaders(progress),
        statuses: contentStatuses,
        signal,
      });
      return appendAnswer(file, content, progress);
    },
  });
  const { bytes } = progress;
  const digest = progress.hash.digest("hex");
  if (digest !== sha256) {
    throw new Error(`The service sent ${bytes} bytes with SHA-256 ${digest} as ${sha256}`);
  }
}

function rangeHeaders({ bytes }: BlobDownloadProgress): Record<string, string> {
  return bytes === 0 ? {} : { range: `bytes=${bytes}-` };
}

async function appendAnswer(
  file: FileHandle,
  { statusCode, body }: Dispatcher.ResponseData,
  progress: BlobDownloadProgress,
): Promise<void> {
  if (statusCode === 416) return body.dump();
  if (statusCode === 200) Object.assign(progress, { bytes: 0, hash: createHash("sha256") });
  for await (const chunk of body) await appendChunk(file, chunk, progress);
}

async function appendChunk(
  file: FileHandle,
  chunk: unknown,
  progress: BlobDownloadProgress,
): Promise<void> {
  if (!Buffer.isBuffer(chunk)) throw new TypeError("The answer is not a stream of bytes");
  await writeAllBytes(file, chunk, progress.bytes);
  progress.hash.update(chunk);
  progress.bytes += chunk.length;
}

interface RangeDownload {
  readonly range: BlobRange;
  readonly requestService: RequestService;
  readonly signal: AbortSignal | undefined;
}

/**
 * Downloads a part of a blob of the service to the same place of a file. After a broken connection
 * it continues after the last byte that was written.
 */
async function downloadRange(
  file: FileHandle,
  sha256: string,
  { range: { start, end }, requestService, signal }: RangeDownload,
): Promise<void> {
  let position = start;
  const rangeHeaders = () => {
    // Where the connection broke after the last byte, that one is sent again.
    position = Math.min(position, end);
    return { range: `bytes=${position}-${end}` };
  };
  const followRedirect = async (answer: Dispatcher.ResponseData) => {
    await answer.body.dump();
    const options = { headers: rangeHeaders(), statuses: [206], signal };
    return requestDirectly(readAnswerHeader(answer, "location"), options);
  };
  await requestService({
    method: "GET",
    path: `/blobs/${sha256}`,
    headers: rangeHeaders,
    statuses: [206, 307],
    signal,
    countTransferred: () => position - start,
    async readAnswer(answer) {
      const { body } = answer.statusCode === 307 ? await followRedirect(answer) : answer;
      for await (const chunk of body) position += await writeChunk(file, chunk, position);
    },
  });
  if (position === end + 1) return;
  const received = `${position - start} bytes`;
  throw new Error(`The service sent ${received} as bytes ${start} to ${end} of ${sha256}`);
}

/** @returns the bytes of the chunk */
async function writeChunk(file: FileHandle, chunk: unknown, position: number): Promise<number> {
  if (!Buffer.isBuffer(chunk)) throw new TypeError("The answer is not a stream of bytes");
  await writeAllBytes(file, chunk, position);
  return chunk.length;
}
