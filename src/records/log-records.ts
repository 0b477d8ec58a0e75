import { type LogLine, logLine } from "../contract/log.ts";
import type { Store } from "./store.ts";

export function logRecords(store: Store) {
  return {
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
