import type { LogLine } from "../../contract/jobs/log.ts";
import type { JobRecord } from "./find-record.ts";
import type { WriteTransaction } from "../database/store.ts";

const linesPerInsert = 500;

/** Appends lines to the job's log. The returned record counts them; the caller saves it. */
export async function appendLines(
  writing: WriteTransaction,
  record: JobRecord,
  lines: readonly Omit<LogLine, "seq">[],
): Promise<JobRecord> {
  const rows = lines.map((line, i) => ({
    ...line,
    job_id: record.job.id,
    seq: record.nextLogSeq + i,
  }));
  for (let start = 0; start < rows.length; start += linesPerInsert) {
    const chunk = rows.slice(start, start + linesPerInsert);
    await writing.trx.insertInto("log_lines").values(chunk).execute();
  }
  return { ...record, nextLogSeq: record.nextLogSeq + lines.length };
}
