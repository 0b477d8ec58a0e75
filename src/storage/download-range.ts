import type { FileHandle } from "node:fs/promises";
import type { Dispatcher } from "undici";
import type { BlobRange } from "./blob-store.ts";
import { requestDirectly } from "./direct-request.ts";
import { readAnswerHeader } from "./follow-redirects.ts";
import type { RequestService } from "./service-request.ts";
import { writeAllBytes } from "./write-all-bytes.ts";

interface RangeDownload {
  readonly range: BlobRange;
  readonly requestService: RequestService;
  readonly signal: AbortSignal | undefined;
}

/**
 * Downloads a part of a blob of the service to the same place of a file. After a broken connection
 * it continues behind the last byte that was written.
 */
export async function downloadRange(
  file: FileHandle,
  sha256: string,
  { range: { start, end }, requestService, signal }: RangeDownload,
): Promise<void> {
  let position = start;
  const rangeHeaders = () => {
    // Where the connection broke behind the last byte, that one is sent again.
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
