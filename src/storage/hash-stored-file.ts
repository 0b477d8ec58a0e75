import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

interface HashOptions {
  readonly signal: AbortSignal | undefined;
  /** Called after each chunk with the bytes so far. */
  readonly onProgress?: (bytes: number) => void;
}

/** Reads a whole file for its size and its SHA-256 (hexadecimal). */
export async function hashStoredFile(
  path: string,
  { signal, onProgress }: HashOptions,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { signal, highWaterMark: 1 << 20 })) {
    hash.update(chunk);
    bytes += chunk.length;
    onProgress?.(bytes);
  }
  return { bytes, sha256: hash.digest("hex") };
}
