import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Writes a source piece by piece. A stuck source ends when the signal is aborted; no write is under
 * way any more when this has ended.
 */
export async function writePieces(
  source: AsyncIterable<Uint8Array>,
  write: (piece: Uint8Array) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  let written = Promise.resolve();
  const output = new Writable({
    write(piece: Uint8Array, _encoding, done) {
      written = write(piece).then(() => done(), done);
    },
  });
  try {
    await pipeline(source, output, signal ? { signal } : {});
  } finally {
    await written;
  }
}
