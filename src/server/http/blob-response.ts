import { ServiceError } from "../../contract/errors.ts";
import type { Blob, BlobStore } from "../../storage/blob-store.ts";

/**
 * A blob, or the part of it that a Range header asks for, as a response.
 * @throws ServiceError range_not_satisfiable
 */
export function blobResponse(blobs: BlobStore, { sha256, bytes }: Blob, rangeHeader?: string) {
  const mediaType = "application/octet-stream" as const;
  const range = rangeHeader === undefined ? undefined : parseByteRange(rangeHeader, bytes);
  if (range === undefined) {
    return {
      status: 200 as const,
      stream: blobs.read(sha256),
      mediaType,
      headers: { "content-length": String(bytes) },
    };
  }
  const headers = {
    "content-length": String(range.end - range.start + 1),
    "content-range": `bytes ${range.start}-${range.end}/${bytes}`,
  };
  return { status: 206 as const, stream: blobs.read(sha256, range), mediaType, headers };
}

/**
 * The first and the last byte, inclusive, that a Range header asks for; undefined where it asks for
 * several ranges or has another form, to which the whole file is the response.
 * @throws ServiceError range_not_satisfiable
 */
export function parseByteRange(
  header: string,
  size: number,
): { start: number; end: number } | undefined {
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
