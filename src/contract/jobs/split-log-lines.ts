import { maxLogLineBytes } from "./log.ts";
import { replaceHiddenCharacters } from "../text/hidden-characters.ts";

/**
 * Lines of at most `maxLogLineBytes`, without hidden characters: names in models are untrusted
 * text.
 */
export function splitLogLines(text: string): string[] {
  return text
    .toWellFormed()
    .split(/\r\n|\n|\r/)
    .map(replaceHiddenCharacters)
    .flatMap(splitLongLine);
}

function splitLongLine(line: string): string[] {
  const pieces: string[] = [];
  let rest = Buffer.from(line);
  while (rest.length > maxLogLineBytes) {
    let end = maxLogLineBytes;
    while (isContinuation(rest[end])) end--;
    pieces.push(rest.subarray(0, end).toString());
    rest = rest.subarray(end);
  }
  return [...pieces, rest.toString()];
}

/** Whether a byte continues a UTF-8 character, which a cut before it would break. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
