import { utf8ByteLength, truncateToBytes } from "./markdown.ts";

export interface Section {
  readonly head: string;
  /** A line each; the last ones are omitted if there is no room. */
  readonly rows: readonly string[];
  /** Text after the rows, such as the end of a block. */
  readonly foot?: string;
}

/** The section under a title that opens it. */
export function foldSection(title: string, { head, rows, foot = "" }: Section): Section {
  const opened = `<details>\n<summary>${title}</summary>\n\n${head}`;
  return { head: opened, rows, foot: `${foot}\n\n</details>` };
}

interface SectionLimits {
  readonly maxBytes: number;
  /** The page that has what is omitted. */
  readonly url: string;
}

/** The sections in at most `maxBytes`, with notes on how many rows are omitted. */
export function composeSections(
  sections: readonly Section[],
  { maxBytes, url }: SectionLimits,
): string {
  const omission = `\n\nThere is more than fits here: ${url}`;
  const end = maxBytes - utf8ByteLength(omission);
  let text = "";
  let isTruncated = false;
  for (const section of sections) {
    const start = text === "" ? section.head : `\n\n${section.head}`;
    const room = { maxBytes: end - utf8ByteLength(text), url };
    const part = fitSection({ ...section, head: start }, room);
    text += part;
    isTruncated ||= part === "";
  }
  return truncateToBytes(isTruncated ? text + omission : text, maxBytes);
}

/** The section with as many of its rows as fit; the empty string where none does. */
function fitSection({ head, rows, foot = "" }: Section, { maxBytes, url }: SectionLimits): string {
  const complete = joinSection(head, rows, foot);
  if (utf8ByteLength(complete) <= maxBytes) return complete;
  const note = (count: number) => `\n\n${count} more, see ${url}`;
  let remainingBytes = maxBytes - utf8ByteLength(head + foot + note(rows.length));
  const end = rows.findIndex((row) => (remainingBytes -= utf8ByteLength(`\n${row}`)) < 0);
  if (end <= 0) return "";
  return joinSection(head, rows.slice(0, end), foot) + note(rows.length - end);
}

function joinSection(head: string, rows: readonly string[], foot: string): string {
  return head + rows.map((row) => `\n${row}`).join("") + foot;
}
