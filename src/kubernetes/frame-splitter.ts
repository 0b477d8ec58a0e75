const headerBytes = 4;

/**
 * Takes the chunks of a stream in turn, and gives the frames that each of them ends. A frame is its length, 32 bits with the highest
 * first, and so many bytes.
 */
export function createFrameSplitter(maxBytes: number): (chunk: Uint8Array) => Uint8Array[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes =
      rest.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
        : Buffer.concat([rest, chunk]);
    const frames: Uint8Array[] = [];
    let start = 0;
    while (bytes.length - start >= headerBytes) {
      const length = bytes.readUInt32BE(start);
      if (length > maxBytes)
        throw new RangeError(`A frame of ${length} bytes is longer than ${maxBytes}`);
      const end = start + headerBytes + length;
      if (end > bytes.length) break;
      frames.push(bytes.subarray(start + headerBytes, end));
      start = end;
    }
    rest = bytes.subarray(start);
    return frames;
  };
}
