import { bytesOf, cutToBytes } from "./markdown.ts";

export interface Section {
  /** What stands above the rows. */
  readonly head: string;
  /** A line each, left out one by one where there is no room. */
  readonly rows: readonly string[];
  /** What ends the section, such as the end of a block. */
  readonly foot?: string;
}

interface Bounds {
  readonly maxBytes: number;
  /** Where what was left out can be read. */
  readonly url: string;
}

/** Sections one below the other, in at most so many bytes. What has no room is left out from the end of each section, and told. */
export function composeSections(sections: readonly Section[], { maxBytes, url }: Bounds): string {
  const omission = `\n\nThere is more than fits here: ${url}`;
  const end = maxBytes - bytesOf(omission);
  let text = "";
  let isCut = false;
  for (const section of sections) {
    const start = text === "" ? section.head : `\n\n${section.head}`;
    const part = partThatFits({ ...section, head: start }, { maxBytes: end - bytesOf(text), url });
    text += part;
    isCut ||= part === "";
  }
  return cutToBytes(isCut ? text + omission : text, maxBytes);
}

function partThatFits({ head, rows, foot = "" }: Section, { maxBytes, url }: Bounds): string {
  const whole = head + rows.map((row) => `\n${row}`).join("") + foot;
  if (bytesOf(whole) <= maxBytes) return whole;
  const note = (count: number) => `\n\n${count} more, see ${url}`;
  let room = maxBytes - bytesOf(head + foot + note(rows.length));
  const cut = rows.findIndex((row) => (room -= bytesOf(`\n${row}`)) < 0);
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
