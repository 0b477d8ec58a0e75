import type { ExpressionBuilder, Kysely } from "kysely";
import { type LogLine, logLine } from "../contract/jobs/log.ts";
import { limits } from "../contract/limits.ts";
import type { Schema } from "./schema.ts";

/** Of an integer column, less what queries add: no line has a larger number. */
export const maxSeq = 2 ** 31 - 2;

/** Lines of a log between two numbers, both exclusive, at most `limit` of them. */
export interface LogRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
}

/** The first lines of a range that are not packed, as many as a page may have bytes. */
export async function readFirstLines(
  db: Kysely<Schema>,
  jobId: string,
  range: LogRange,
): Promise<LogLine[]> {
  const lines = selectLines(db, jobId, range);
  const sizes = await lines.select(lineSize).orderBy("seq").limit(range.limit).execute();
  const last = sizes[countFitting(sizes) - 1];
  if (last === undefined) return [];
  return readLogRows(lines.where("seq", "<=", last.seq));
}

/** The same of the last lines of a range, oldest first. */
export async function readLastLines(
  db: Kysely<Schema>,
  jobId: string,
  range: LogRange,
): Promise<LogLine[]> {
  const lines = selectLines(db, jobId, range);
  const sizes = await lines.select(lineSize).orderBy("seq", "desc").limit(range.limit).execute();
  const first = sizes[countFitting(sizes) - 1];
  if (first === undefined) return [];
  return readLogRows(lines.where("seq", ">=", first.seq));
}

/** How many of these lines a page may have: at least one. */
export function countFitting(lines: readonly { readonly bytes: number }[]): number {
  let bytes = 0;
  const tooMany = lines.findIndex((line) => (bytes += line.bytes) > limits.logPageBytes);
  return tooMany === -1 ? lines.length : Math.max(1, tooMany);
}

function selectLines(db: Kysely<Schema>, jobId: string, { after, before }: LogRange) {
  return db
    .selectFrom("log_lines")
    .where("job_id", "=", jobId)
    .where("seq", ">", after)
    .where("seq", "<", before);
}

async function readLogRows(lines: ReturnType<typeof selectLines>): Promise<LogLine[]> {
  const rows = await lines.select(["seq", "at", "stream", "text"]).orderBy("seq").execute();
  return rows.map((row) => logLine.parse(row));
}

function lineSize(eb: ExpressionBuilder<Schema, "log_lines">) {
  return ["seq", eb.fn<number>("octet_length", ["text"]).as("bytes")] as const;
}
