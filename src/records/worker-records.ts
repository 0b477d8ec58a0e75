import type { WorkerEvent } from "../contract/jobs/worker.ts";
import { findAssignment } from "./find-assignment.ts";
import { recordReportedEvents } from "./record-reported-events.ts";
import { runReadTransaction, type Store, runWriteTransaction } from "./store.ts";

/** What workers ask and report. */
export function workerRecords(store: Store) {
  const record = (
    jobId: string,
    reported: { attempt: number; events: readonly WorkerEvent[]; isFinal: boolean },
  ) =>
    runWriteTransaction(store, (writing) => recordReportedEvents(writing, { jobId, ...reported }));

  return {
    /** The attempt that a worker's secret belongs to. */
    findAttemptBySecret: (jobId: string, secretHash: string) =>
      findAttemptBySecret(store, jobId, secretHash),

    /** What the worker of an attempt does; undefined where the job or the attempt has ended. */
    findAssignment: (jobId: string, attempt: number) =>
      runReadTransaction(store, (trx) => findAssignment(trx, jobId, attempt)),

    /**
     * Records what a worker reports. Events that are recorded already are ignored, and so is
     * everything after a gap: the answer names the next event. The worker of an attempt that has
     * ended has to stop: its missing lines are recorded, and its other events count only while no
     * later attempt has replaced it and the job has not ended.
     */
    recordEvents: (jobId: string, attempt: number, events: readonly WorkerEvent[]) =>
      record(jobId, { attempt, events, isFinal: false }),

    /** Records events of a worker that has ended, such as from its pod's log: gaps stay gaps. */
    recordFinalEvents: (jobId: string, attempt: number, events: readonly WorkerEvent[]) =>
      record(jobId, { attempt, events, isFinal: true }),
  };
}

async function findAttemptBySecret(
  { db }: Store,
  jobId: string,
  secretHash: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("attempts")
    .select("attempt")
    .where("job_id", "=", jobId)
    .where("secret_hash", "=", secretHash)
    .executeTakeFirst();
  return row?.attempt;
}
