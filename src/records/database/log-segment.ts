import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { type LogLine, logLine } from "../../contract/jobs/log.ts";

/** Lines of a finished job's log that follow each other, as a row of their table. */
export interface LogSegment {
  readonly first_seq: number;
  readonly last_seq: number;
  /** JSON lines, compressed with Zstandard. */
  readonly lines: Uint8Array;
}

/** @param lines at least one, oldest first */
export function packSegment(lines: readonly LogLine[]): LogSegment {
  const [first, last] = [lines[0], lines.at(-1)];
  if (first === undefined || last === undefined) throw new Error("A segment needs a line");
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  return { first_seq: first.seq, last_seq: last.seq, lines: zstdCompressSync(text) };
}

export function unpackSegment({ lines }: Pick<LogSegment, "lines">): LogLine[] {
  const texts = zstdDecompressSync(lines).toString().split("\n");
  return texts.map((text) => logLine.parse(JSON.parse(text)));
}
