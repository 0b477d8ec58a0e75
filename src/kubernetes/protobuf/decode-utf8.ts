/** Decodes UTF-8 without a copy of the bytes. */
export function decodeUtf8(utf8: Uint8Array): string {
  return Buffer.from(utf8.buffer, utf8.byteOffset, utf8.byteLength).toString("utf8");
}
