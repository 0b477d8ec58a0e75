import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { Dispatcher } from "undici";
import { requestDirectly } from "./direct-request.ts";
import { readAnswerHeader } from "./follow-redirects.ts";
import type { RequestService } from "./service-request.ts";
import { writeAllBytes } from "./write-all-bytes.ts";

/** 416: the connection broke behind the last byte, and nothing is left to send. */
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
 * Downloads a blob of the service. After a broken connection it continues behind the last byte that
 * was written: content that is named by its hash does not change.
 */
export async function downloadBlob(
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
