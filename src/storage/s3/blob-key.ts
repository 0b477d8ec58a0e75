export const blobPrefix = "blobs/";

/** Key of a blob. */
export function blobKey(sha256: string): string {
  return `${blobPrefix}${sha256.slice(0, 2)}/${sha256}`;
}
