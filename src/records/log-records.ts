import type { ExpressionBuilder } from "kysely";
import { type LogLine, logLine } from "../contract/log.ts";
import { limits } from "../contract/limits.ts";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

export function logRecords(store: Store) {
  return {
    /** The next lines of a job, as many as `limits` allows in memory and at least one. */
    readPage: (jobId: string, after: number) => readLogPage(store, jobId, after),

    /** The last lines of a job in a range, as many as `limits` allows in memory. */
    readPageBefore: (jobId: string, range: BackwardRange) => readPageBefore(store, jobId, range),

    /** Lines of a job that follow the line numbered `after`. */
    async read(jobId: string, range: { after: number; limit: number }): Promise<LogLine[]> {
      const rows = await store.db
        .selectFrom("log_lines")
        .select(["seq", "at", "stream", "text"])
        .where("job_id", "=", jobId)
        .where("seq", ">", range.after)
        .orderBy("seq")
        .limit(range.limit)
        .execute();
      return rows.map((row) => logLine.parse(row));
    },

    /** The last lines of a job, oldest first. */
    async tail(jobId: string, count: number): Promise<LogLine[]> {
      const rows = await store.db
        .selectFrom("log_lines")
        .select(["seq", "at", "stream", "text"])
        .where("job_id", "=", jobId)
        .orderBy("seq", "desc")
        .limit(count)
        .execute();
      return rows.map((row) => logLine.parse(row)).toReversed();
    },
  };
}

async function readLogPage({ db }: Store, jobId: string, after: number): Promise<LogLine[]> {
  const lines = db.selectFrom("log_lines").where("job_id", "=", jobId).where("seq", ">", after);
  const sizes = await lines.select(lineSize).orderBy("seq").limit(limits.logPageLines).execute();
  const last = findPageEnd(sizes);
  if (last === undefined) return [];
  const rows = await lines
    .select(["seq", "at", "stream", "text"])
    .where("seq", "<=", last)
    .orderBy("seq")
    .execute();
  return rows.map((row) => logLine.parse(row));
}

/** Lines between two numbers, both exclusive, the last `limit` of them. */
interface BackwardRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
}

async function readPageBefore(
  { db }: Store,
  jobId: string,
  { after, before, limit }: BackwardRange,
): Promise<LogLine[]> {
  const lines = db
    .selectFrom("log_lines")
    .where("job_id", "=", jobId)
    .where("seq", "<", before)
    .where("seq", ">", after);
  const sizes = await lines.select(lineSize).orderBy("seq", "desc").limit(limit).execute();
  const first = findPageEnd(sizes);
  if (first === undefined) return [];
  const rows = await lines
    .select(["seq", "at", "stream", "text"])
    .where("seq", ">=", first)
    .orderBy("seq")
    .execute();
  return rows.map((row) => logLine.parse(row));
}

function lineSize(eb: ExpressionBuilder<Schema, "log_lines">) {
  return ["seq", eb.fn<number>("octet_length", ["text"]).as("bytes")] as const;
}

/** The last line that a page may have: it has at least one. */
function findPageEnd(lines: readonly { seq: number; bytes: number }[]): number | undefined {
  let bytes = 0;
  const tooMany = lines.findIndex((line) => (bytes += line.bytes) > limits.logPageBytes);
  return lines.at(tooMany === -1 ? -1 : Math.max(0, tooMany - 1))?.seq;
}
