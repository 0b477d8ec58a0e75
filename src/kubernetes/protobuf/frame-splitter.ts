const headerBytes = 4;

/**
 * Returns a function that takes the chunks of a stream in turn and returns the frames that end in
 * each. A frame is its length, 32 bits in big-endian order, and so many bytes.
 */
export function createFrameSplitter(maxBytes: number): (chunk: Uint8Array) => Uint8Array[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? asBuffer(chunk) : Buffer.concat([rest, chunk]);
    const frames: Uint8Array[] = [];
    let start = 0;
    while (bytes.length - start >= headerBytes) {
      const length = bytes.readUInt32BE(start);
      if (length > maxBytes) {
        throw new RangeError(`A frame of ${length} bytes is longer than ${maxBytes}`);
      }
      const end = start + headerBytes + length;
      if (end > bytes.length) break;
      frames.push(bytes.subarray(start + headerBytes, end));
      start = end;
    }
    rest = bytes.subarray(start);
    return frames;
  };
}

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
}
