import { packSegment } from "./log-segment.ts";
import { maxSeq, readFirstLines } from "./read-log-lines.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** Time for the last lines of a job that has ended, such as those in the log of its pod. */
const settledMs = 600_000;
const jobsPerPage = 100;
/** More compress little better. */
const linesPerSegment = 5_000;

/**
 * Packs the logs of jobs that have ended into compressed segments, one in each transaction: others
 * wait for it. Readers see every line once, packed or not.
 */
export async function packLogs(store: Store): Promise<void> {
  const settled = new Date(store.now().getTime() - settledMs).toISOString();
  for (;;) {
    const ended = await store.db
      .selectFrom("jobs")
      .select("id")
      .where("finished_at", "is not", null)
      .where("finished_at", "<", settled)
      .where("has_log_lines", "=", 1)
      .orderBy("finished_at")
      .limit(jobsPerPage)
      .execute();
    for (const { id } of ended) {
      while (await runWriteTransaction(store, (writing) => packLines(writing, id)));
    }
    if (ended.length < jobsPerPage) return;
  }
}

/** @returns whether there are more lines */
async function packLines({ trx }: WriteTransaction, jobId: string): Promise<boolean> {
  const range = { after: 0, before: maxSeq, limit: linesPerSegment };
  const lines = await readFirstLines(trx, jobId, range);
  if (lines.length === 0) {
    await trx.updateTable("jobs").set({ has_log_lines: 0 }).where("id", "=", jobId).execute();
    return false;
  }
  const segment = packSegment(lines);
  await trx
    .insertInto("log_segments")
    .values({ job_id: jobId, ...segment })
    .execute();
  await trx
    .deleteFrom("log_lines")
    .where("job_id", "=", jobId)
    .where("seq", "<=", segment.last_seq)
    .execute();
  return true;
}
