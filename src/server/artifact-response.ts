import type { Artifact } from "../contract/jobs/artifact.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import { blobResponse } from "./blob-response.ts";
import { isETagMatch } from "./etag.ts";

/** Request headers of downloads. */
interface DownloadHeaders {
  readonly range?: string | undefined;
  readonly "if-none-match"?: string | undefined;
  readonly "if-range"?: string | undefined;
}

/** @throws ServiceError range_not_satisfiable */
export function artifactResponse(
  blobs: BlobStore,
  { sha256, bytes, name }: Artifact,
  headers: DownloadHeaders,
) {
  const etag = `"${sha256}"`;
  if (isETagMatch(headers["if-none-match"], etag)) {
    return { status: 304 as const, headers: { etag } };
  }
  const isRangeCurrent = (headers["if-range"] ?? etag) === etag;
  const range = isRangeCurrent ? headers.range : undefined;
  const response = blobResponse(blobs, { sha256, bytes }, range);
  const fileHeaders = {
    etag,
    "accept-ranges": "bytes",
    "content-disposition": `attachment; filename="${name}"`,
  };
  return { ...response, headers: { ...fileHeaders, ...response.headers } };
}
