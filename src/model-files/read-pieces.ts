import { open } from "node:fs/promises";

const pieceBytes = 1 << 20;

/**
 * The bytes of a file from `start` on, in pieces. A piece is overwritten when the next but one is
 * read: new memory for each accumulates faster than it is collected, and takes twice the time.
 */
export async function* readPieces(
  file: string,
  signal: AbortSignal | undefined,
  start = 0,
): AsyncGenerator<Uint8Array> {
  await using opened = await open(file);
  const buffers = [new Uint8Array(pieceBytes), new Uint8Array(pieceBytes)] as const;
  let position = start;
  for (let turn: 0 | 1 = 0; ; turn = turn === 0 ? 1 : 0) {
    signal?.throwIfAborted();
    const { bytesRead } = await opened.read(buffers[turn], 0, pieceBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffers[turn].subarray(0, bytesRead);
  }
}
