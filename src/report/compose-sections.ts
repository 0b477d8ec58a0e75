import { utf8ByteLength, truncateToBytes } from "./markdown.ts";

export interface Section {
  /** What stands above the rows. */
  readonly head: string;
  /** A line each, left out one by one where there is no room. */
  readonly rows: readonly string[];
  /** What ends the section, such as the end of a block. */
  readonly foot?: string;
}

interface SectionLimits {
  readonly maxBytes: number;
  /** Where what was left out can be read. */
  readonly url: string;
}

/** Sections one below the other, in at most so many bytes. What has no room is left out from the end of each section, and told. */
export function composeSections(
  sections: readonly Section[],
  { maxBytes, url }: SectionLimits,
): string {
  const omission = `\n\nThere is more than fits here: ${url}`;
  const end = maxBytes - utf8ByteLength(omission);
  let text = "";
  let isCut = false;
  for (const section of sections) {
    const start = text === "" ? section.head : `\n\n${section.head}`;
    const part = fitSection(
      { ...section, head: start },
      { maxBytes: end - utf8ByteLength(text), url },
    );
    text += part;
    isCut ||= part === "";
  }
  return truncateToBytes(isCut ? text + omission : text, maxBytes);
}

function fitSection({ head, rows, foot = "" }: Section, { maxBytes, url }: SectionLimits): string {
  const complete = head + rows.map((row) => `\n${row}`).join("") + foot;
  if (utf8ByteLength(complete) <= maxBytes) return complete;
  const note = (count: number) => `\n\n${count} more, see ${url}`;
  let remainingBytes = maxBytes - utf8ByteLength(head + foot + note(rows.length));
  const cut = rows.findIndex((row) => (remainingBytes -= utf8ByteLength(`\n${row}`)) < 0);
  if (cut <= 0) return "";
  return (
    head +
    rows
      .slice(0, cut)
      .map((row) => `\n${row}`)
      .join("") +
    foot +
    note(rows.length - cut)
  );
}
