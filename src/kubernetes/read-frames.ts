const headerBytes = 4;

/** Frames of a stream: each is its length, 32 bits with the highest first, and so many bytes. One that the end cuts off is dropped. */
export async function* readFrames(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes =
      rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : Buffer.concat([rest, chunk]);
    let start = 0;
    while (bytes.length - start >= headerBytes) {
      const length = bytes.readUInt32BE(start);
      if (length > maxBytes) throw new RangeError(`A frame of ${length} bytes is longer than ${maxBytes}`);
      const end = start + headerBytes + length;
      if (end > bytes.length) break;
      yield bytes.subarray(start + headerBytes, end);
      start = end;
    }
    rest = bytes.subarray(start);
  }
}
