import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { z } from "zod";
import { sha256 as sha256Schema } from "../contract/model.ts";
import type { BlobFiles } from "./blob-store.ts";
import { storageError } from "./file-error.ts";

const readBytes = 1 << 20;

/** A request of a worker to its service. */
export interface ServiceRequest<T> {
  readonly method: "GET" | "HEAD" | "POST" | "PUT";
  /** Below the address of the worker's job. */
  readonly path: string;
  /** Asked for anew at each try, as the body is. */
  readonly headers?: () => Readonly<Record<string, string>>;
  readonly body?: () => string | Readable;
  /** Statuses that are answers. */
  readonly statuses: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** Where it fails, the request is made again. */
  readAnswer(this: void, answer: Dispatcher.ResponseData): Promise<T>;
  /** What has been transferred by all tries; the patience for outages of the service begins anew when it has grown. */
  readonly countTransferred?: () => number;
}

/** Makes a request until it is answered, over outages of the service. */
export type RequestService = <T>(request: ServiceRequest<T>) => Promise<T>;

const storedBlob = z.object({ sha256: sha256Schema, bytes: z.int() });

/** The service's store, for workers that do not share a disk with it. */
export function createServiceBlobStore(requestService: RequestService): BlobFiles {
  const find: BlobFiles["find"] = async (sha256) =>
    requestService({
      method: "HEAD",
      path: `/blobs/${sha256}`,
      statuses: [200, 404],
      async readAnswer({ statusCode, headers, body }) {
        await body.dump();
        return statusCode === 404
          ? undefined
          : { bytes: z.coerce.number().int().parse(headers["content-length"]) };
      },
    });
  return {
    find,

    async materialize(sha256, path, signal) {
      try {
        await using file = await open(path, "wx");
        await downloadBlob(file, sha256, { requestService, signal });
      } catch (error) {
        await rm(path, { force: true });
        throw storageError(error);
      }
    },

    async writeFile(path, { expectedSha256, signal } = {}) {
      const sha256 = expectedSha256 ?? (await computeFileSha256(path, signal));
      const { size: bytes } = await stat(path);
      if ((await find(sha256)) === undefined)
        await uploadBlob(path, { sha256, bytes }, { requestService, signal });
      return { sha256, bytes };
    },
  };
}

interface BlobTransferOptions {
  readonly requestService: RequestService;
  readonly signal: AbortSignal | undefined;
}

async function uploadBlob(
  path: string,
  blob: z.infer<typeof storedBlob>,
  { requestService, signal }: BlobTransferOptions,
): Promise<void> {
  const stored = await requestService({
    method: "PUT",
    path: `/blobs/${blob.sha256}`,
    headers: () => ({
      "content-type": "application/octet-stream",
      "content-length": String(blob.bytes),
    }),
    body: () => createReadStream(path, { highWaterMark: readBytes }),
    statuses: [200, 201],
    signal,
    readAnswer: async ({ body }) => storedBlob.parse(await body.json()),
  });
  if (stored.sha256 !== blob.sha256 || stored.bytes !== blob.bytes) {
    throw new Error(
      `The service stored ${stored.bytes} bytes as ${stored.sha256}, and was sent ${blob.bytes} as ${blob.sha256}`,
    );
  }
}

async function computeFileSha256(path: string, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, {
    highWaterMark: readBytes,
    ...(signal && { signal }),
  })) {
    hash.update(chunk);
  }
  return hash.digest("hex");
}

interface BlobDownloadProgress {
  bytes: number;
  hash: Hash;
}

/** Downloads a blob, after a broken connection behind the last byte that was written: content that is named by its hash does not change. */
async function downloadBlob(
  file: FileHandle,
  sha256: string,
  { requestService, signal }: BlobTransferOptions,
): Promise<void> {
  const progress: BlobDownloadProgress = { bytes: 0, hash: createHash("sha256") };
  await requestService({
    method: "GET",
    path: `/blobs/${sha256}`,
    headers: () => (progress.bytes === 0 ? {} : { range: `bytes=${progress.bytes}-` }),
    // Nothing is left to send where the connection broke behind the last byte.
    statuses: [200, 206, 416],
    signal,
    countTransferred: () => progress.bytes,
    async readAnswer({ statusCode, body }) {
      if (statusCode === 416) return body.dump();
      if (statusCode === 200)
        Object.assign(progress, {
          bytes: 0,
          hash: createHash("sha256"),
        } satisfies BlobDownloadProgress);
      for await (const chunk of body) {
        await writeBlobChunk(file, chunk, progress);
      }
    },
  });
  const found = progress.hash.digest("hex");
  if (found !== sha256)
    throw new Error(`The service sent ${progress.bytes} bytes with SHA-256 ${found} as ${sha256}`);
}

async function writeBlobChunk(
  file: FileHandle,
  chunk: unknown,
  progress: BlobDownloadProgress,
): Promise<void> {
  if (!Buffer.isBuffer(chunk)) throw new TypeError("The answer is not a stream of bytes");
  for (let done = 0; done < chunk.length;) {
    done += (await file.write(chunk, done, chunk.length - done, progress.bytes + done))
      .bytesWritten;
  }
  progress.hash.update(chunk);
  progress.bytes += chunk.length;
}
