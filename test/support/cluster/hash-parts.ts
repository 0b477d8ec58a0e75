import { createHash } from "node:crypto";

/** Twelve hexadecimal digits that name the parts, for folders and files of a cache. */
export function hashParts(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest("hex").slice(0, 12);
}
