import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

interface HashOptions {
  readonly signal: AbortSignal | undefined;
  /** Called after each chunk with the bytes so far. */
  readonly onProgress?: (bytes: number) => void;
}

const chunkBytes = 1024 * 1024;

/**
 * Reads a whole file for its size and its SHA-256 (hexadecimal). Two buffers are enough to read a
 * chunk while the one before is hashed.
 */
export async function hashStoredFile(
  path: string,
  { signal, onProgress }: HashOptions,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  await using file = await open(path);
  let [chunk, next] = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)];
  let bytes = 0;
  let reading = file.read(chunk);
  for (;;) {
    const { bytesRead } = await reading;
    signal?.throwIfAborted();
    if (bytesRead === 0) break;
    reading = file.read(next);
    hash.update(chunk.subarray(0, bytesRead));
    [chunk, next] = [next, chunk];
    bytes += bytesRead;
    onProgress?.(bytes);
  }
  return { bytes, sha256: hash.digest("hex") };
}
