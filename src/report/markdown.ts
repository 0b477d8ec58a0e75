/** Text that Markdown shows as it is, on one line. */
export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/[\\`*_{}[\]<>()#+\-.!|~@&:$]/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

/** Bytes of a text in UTF-8, in which GitHub's limits are counted. */
export function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}
