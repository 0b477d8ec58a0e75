import type { Readable } from "node:stream";
import { ServiceError } from "../../contract/errors.ts";
import type { Blob, BlobStore } from "../../storage/blob-store.ts";

interface FullBlobResponse {
  readonly status: 200;
  readonly stream: Readable;
  readonly mediaType: "application/octet-stream";
  readonly headers: { readonly "content-length": string };
}

interface PartialBlobResponse {
  readonly status: 206;
  readonly stream: Readable;
  readonly mediaType: "application/octet-stream";
  readonly headers: { readonly "content-length": string; readonly "content-range": string };
}

/**
 * A blob, or the part of it that a Range header asks for, as a response.
 * @throws ServiceError range_not_satisfiable
 */
export function blobResponse(
  blobs: BlobStore,
  { sha256, bytes }: Blob,
  rangeHeader?: string,
): FullBlobResponse | PartialBlobResponse {
  const mediaType = "application/octet-stream";
  const range = rangeHeader === undefined ? undefined : parseByteRange(rangeHeader, bytes);
  if (range === undefined) {
    return {
      status: 200,
      stream: blobs.read(sha256),
      mediaType,
      headers: { "content-length": String(bytes) },
    };
  }
  const headers = {
    "content-length": String(range.end - range.start + 1),
    "content-range": `bytes ${range.start}-${range.end}/${bytes}`,
  };
  return { status: 206, stream: blobs.read(sha256, range), mediaType, headers };
}

/** First and last byte, inclusive. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The range of bytes that a Range header asks for; undefined where it asks for several or has
 * another form, to which the whole file is the response.
 * @throws ServiceError range_not_satisfiable
 */
export function parseByteRange(header: string, size: number): ByteRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header.trim()) ?? [];
  if (first === "" && last === "") return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (start > end) {
    const message = `Range "${header}" lies outside the ${size} bytes of the file`;
    const headers = { "content-range": `bytes */${size}` };
    throw new ServiceError("range_not_satisfiable", message, { headers });
  }
  return { start, end };
}
