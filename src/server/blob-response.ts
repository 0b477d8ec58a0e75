import type { Readable } from "node:stream";
import type { Blob, BlobStore } from "../storage/blob-store.ts";
import { parseByteRange } from "./parse-byte-range.ts";

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
