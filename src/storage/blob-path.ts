import path from "node:path";

/** Where a directory store keeps a blob. */
export function blobPath(directory: string, sha256: string): string {
  return path.join(directory, "blobs", sha256.slice(0, 2), sha256);
}
