import type { FileHandle } from "node:fs/promises";
import { writeAllBytes } from "./write-all-bytes.ts";

/** Writes content to a file from a position on. */
export async function writeStream(
  file: FileHandle,
  source: AsyncIterable<Uint8Array>,
  start: number,
): Promise<void> {
  let position = start;
  for await (const chunk of source) {
    await writeAllBytes(file, chunk, position);
    position += chunk.length;
  }
}
