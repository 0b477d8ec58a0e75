import { stripVTControlCharacters } from "node:util";

/** Bytes of a text in UTF-8, in which GitHub counts its limits. */
export function utf8ByteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** The beginning of a text in at most so many bytes; characters stay whole. */
export function truncateToBytes(text: string, maxBytes: number): string {
  if (utf8ByteLength(text) <= maxBytes) return text;
  const mark = "…";
  const bytes = Buffer.from(text).subarray(0, Math.max(0, maxBytes - utf8ByteLength(mark)));
  // A character that was cut becomes one that replaces it, or several.
  return (
    bytes.toString("utf8").replace(/\ufffd+$/, "") + (maxBytes >= utf8ByteLength(mark) ? mark : "")
  );
}

/** Text that is not ours, shown as it is on one line: in code nothing is a link, a mention, markup or the end of a table's cell. */
export function inlineCode(text: string): string {
  const line = toOneLine(text).replaceAll("|", "¦");
  if (line === "") return "";
  const longest = Math.max(0, ...Array.from(line.matchAll(/`+/g), ([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const space = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

/** Text that is not ours, over several lines, shown as it is. */
export function codeBlock(lines: readonly string[]): string {
  const visibleLines = lines.map(stripControlCharacters);
  const longest = Math.max(
    2,
    ...visibleLines.flatMap((line) => Array.from(line.matchAll(/`+/g), ([run]) => run.length)),
  );
  const fence = "`".repeat(longest + 1);
  return [`${fence}text`, ...visibleLines, fence].join("\n");
}

/** A row of a table. */
export function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

export function tableHead(heads: readonly string[]): string {
  return `${tableRow(heads)}\n${tableRow(heads.map(() => "---"))}`;
}

function toOneLine(text: string): string {
  return stripControlCharacters(text).replaceAll(/\s+/g, " ").trim();
}

/** Without what terminals and browsers obey instead of showing it. */
function stripControlCharacters(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]+/gu, " ")
    .toWellFormed();
}
