import { decodeUtf8 } from "./protobuf/decode-utf8.ts";

const lineFeed = 0x0a;

/**
 * Lines of a stream, each with its line feed; the last one lacks it where the stream ends without.
 * A line above `maxBytes` comes in pieces, cut between characters, of which the last has the line
 * feed.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, undefined> {
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    let searched = rest.length;
    for (;;) {
      const end = bytes.indexOf(lineFeed, searched);
      const stop = end === -1 ? bytes.length : end + 1;
      while (stop - start > maxBytes) {
        const cut = findCharacterStart(bytes, start + maxBytes);
        yield decodeUtf8(bytes.subarray(start, cut));
        start = cut;
      }
      if (end === -1) break;
      yield decodeUtf8(bytes.subarray(start, stop));
      start = searched = stop;
    }
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) yield decodeUtf8(rest);
}

/** The last index up to `at` where a UTF-8 character starts. */
function findCharacterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  while (at - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}
