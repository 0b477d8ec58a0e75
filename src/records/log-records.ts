import { type LogLine, logLine } from "../contract/log.ts";
import { limits } from "../contract/limits.ts";
import type { Store } from "./store.ts";

export function logRecords(store: Store) {
  return {
    /** The next lines of a job, as many as `limits` allows in memory and at least one. */
    readPage: (jobId: string, after: number) => readLogPage(store, jobId, after),

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
  const sizes = await lines
    .select(["seq", (eb) => eb.fn<number>("octet_length", ["text"]).as("bytes")])
    .orderBy("seq")
    .limit(limits.logPageLines)
    .execute();
  let bytes = 0;
  const tooMany = sizes.findIndex((line) => (bytes += line.bytes) > limits.logPageBytes);
  const last = sizes.at(tooMany === -1 ? -1 : Math.max(0, tooMany - 1));
  if (last === undefined) return [];
  const rows = await lines
    .select(["seq", "at", "stream", "text"])
    .where("seq", "<=", last.seq)
    .orderBy("seq")
    .execute();
  return rows.map((row) => logLine.parse(row));
}
