import type { LogLine } from "../contract/log.ts";
import { isTerminal } from "../contract/status.ts";
import { target } from "../contract/target.ts";
import type { Assignment, WorkerEvent } from "../contract/worker.ts";
import { applyEvent } from "./apply-event.ts";
import { findLiveRecord, insertLines, type JobRecord, parseJob, saveRecords } from "./job-record.ts";
import { type Store, write } from "./store.ts";

export function workerRecords(store: Store) {
  return {
    /** The attempt that a worker's secret belongs to. */
    async attemptOf(jobId: string, secretHash: string): Promise<number | undefined> {
      const row = await store.db
        .selectFrom("attempts")
        .select("attempt")
        .where("job_id", "=", jobId)
        .where("secret_hash", "=", secretHash)
        .executeTakeFirst();
      return row?.attempt;
    },

    async assignment(jobId: string): Promise<Omit<Assignment, "limits"> | undefined> {
      const row = await store.db.selectFrom("jobs").selectAll().where("id", "=", jobId).executeTakeFirst();
      if (row === undefined) return undefined;
      const { id, kind, recipe, dryRun, model } = parseJob(row.document);
      return {
        id,
        kind,
        recipe,
        dryRun,
        model: { source: model.source, name: model.name, ...(model.sha256 !== undefined && { sha256: model.sha256 }) },
        target: target.parse(JSON.parse(row.target_document)),
        attempt: row.attempt,
        nextSeq: row.next_seq,
        nextLogSeq: row.next_log_seq,
      };
    },

    /**
     * Records what a worker tells. Events told before are ignored, and so is everything after a gap: the answer says which
     * event is waited for. A worker whose attempt is over is told to stop.
     */
    async apply(jobId: string, attempt: number, events: readonly WorkerEvent[]) {
      return write(store, async (writing) => {
        const before = await findLiveRecord(writing, jobId, attempt);
        if (before === undefined) return { nextSeq: 1, cancelled: true };
        const { after, lines } = folded(before, events, writing.now);
        if (after.nextSeq > before.nextSeq) {
          await insertLines(writing, jobId, lines);
          await saveRecords(writing, [{ before, after }]);
        }
        const { status } = after.job;
        return { nextSeq: after.nextSeq, cancelled: status === "Cancelling" || status === "Cancelled" };
      });
    },
  };
}

function folded(before: JobRecord, events: readonly WorkerEvent[], now: Date) {
  let { job, nextSeq, nextLogSeq } = before;
  const lines: LogLine[] = [];
  for (const event of events) {
    if (event.seq < nextSeq) continue;
    if (event.seq > nextSeq) break;
    nextSeq++;
    if (event.type === "log" && !isTerminal(job.status)) {
      lines.push(event.line);
      nextLogSeq = Math.max(nextLogSeq, event.line.seq + 1);
    }
    job = applyEvent(job, event, now);
  }
  return { after: { ...before, job, nextSeq, nextLogSeq }, lines };
}
