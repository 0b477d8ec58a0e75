import type { FileHandle } from "node:fs/promises";

/** Writes all bytes at a position of a file. */
export async function writeFully(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}
