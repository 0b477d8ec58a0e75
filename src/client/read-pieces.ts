import { open } from "node:fs/promises";

const pieceBytes = 1 << 20;

/**
 * The bytes of a file in pieces. A piece is overwritten when the next but one is read: fresh memory for each would pile up
 * faster than it is collected, and take twice the time.
 */
export async function* readPieces(file: string, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  await using opened = await open(file);
  const buffers = [new Uint8Array(pieceBytes), new Uint8Array(pieceBytes)] as const;
  for (let turn: 0 | 1 = 0; ; turn = turn === 0 ? 1 : 0) {
    signal?.throwIfAborted();
    const { bytesRead } = await opened.read(buffers[turn], 0, pieceBytes);
    if (bytesRead === 0) return;
    yield buffers[turn].subarray(0, bytesRead);
  }
}
