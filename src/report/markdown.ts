import { stripVTControlCharacters } from "node:util";

/** GitHub counts its limits in bytes of UTF-8. */
export function utf8ByteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** The start of the text in at most so many bytes; no character is split. */
export function truncateToBytes(text: string, maxBytes: number): string {
  if (utf8ByteLength(text) <= maxBytes) return text;
  const mark = "…";
  const bytes = Buffer.from(text).subarray(0, Math.max(0, maxBytes - utf8ByteLength(mark)));
  // Decoding turns a split character into replacement characters.
  const start = bytes.toString("utf8").replace(/\ufffd+$/, "");
  return maxBytes >= utf8ByteLength(mark) ? start + mark : start;
}

/** Foreign text as code on one line: no link, mention, markup or end of a table's cell. */
export function inlineCode(text: string): string {
  const line = toOneLine(text).replaceAll("|", "¦");
  if (line === "") return "";
  const fence = fenceFor([line], 1);
  const space = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

/** Foreign text in bold, as code where it could be more than words: a link, a mention, markup. */
export function bold(text: string): string {
  const isWords = /^[\p{L}\p{N} .,;:%×()"'-]*$/u.test(text) && !/www\./i.test(text);
  return `**${isWords ? text : inlineCode(text)}**`;
}

/** Foreign text as a block of code. */
export function codeBlock(lines: readonly string[]): string {
  const visibleLines = lines.map(stripControlCharacters);
  const fence = fenceFor(visibleLines, 3);
  return [`${fence}text`, ...visibleLines, fence].join("\n");
}

/** More backticks than the lines have in a row, which end the code otherwise. */
function fenceFor(lines: readonly string[], minLength: number): string {
  const runs = lines.flatMap((line) => Array.from(line.matchAll(/`+/g), ([run]) => run.length));
  return "`".repeat(Math.max(minLength, ...runs.map((length) => length + 1)));
}

/** Foreign text as a label of a drawing in Mermaid, in quotes. */
export function mermaidLabel(text: string): string {
  const label = text.replaceAll(/[^\w .-]/g, "_");
  return label.length <= 40 ? label : `${label.slice(0, 20)}..${label.slice(-18)}`;
}

export function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

export function tableHead(heads: readonly string[]): string {
  return `${tableRow(heads)}\n${tableRow(heads.map(() => "---"))}`;
}

/** Foreign text on one line, without what is interpreted instead of displayed. */
export function toOneLine(text: string): string {
  return stripControlCharacters(text).replaceAll(/\s+/g, " ").trim();
}

/** Removes what terminals and browsers interpret instead of displaying it. */
function stripControlCharacters(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]+/gu, " ")
    .toWellFormed();
}

/** Limits of GitHub. */
export const githubLimits = {
  jobSummaryBytes: 1_048_576,
  /** For the summary and the text of a check run each. */
  checkFieldBytes: 65_535,
  checkNameBytes: 255,
  checkTitleBytes: 255,
  commentBytes: 65_536,
  /** Per request. */
  annotations: 50,
  annotationTitleBytes: 255,
  annotationMessageBytes: 64_000,
} as const;
