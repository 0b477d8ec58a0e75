import type { Job } from "../../contract/jobs/job.ts";
import { type AttemptRecord, findAttempts } from "./find-attempts.ts";
import { parseJob } from "./find-record.ts";
import { runReadTransaction, type Store } from "../database/store.ts";

/** A job with what its trace shows besides. */
export interface TracedJob {
  readonly project: string;
  readonly job: Job;
  /** Of the request that created it; null where none did, or requests were not traced. */
  readonly traceparent: string | null;
  /** In the order in which they started. */
  readonly attempts: readonly AttemptRecord[];
}

/** What traces show of jobs. */
export function traceRecords(store: Store) {
  return {
    /** Undefined if there is no such job. */
    findJob: (id: string): Promise<TracedJob | undefined> =>
      runReadTransaction(store, async (trx) => {
        const row = await trx
          .selectFrom("jobs")
          .select(["project", "document", "traceparent"])
          .where("id", "=", id)
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const { project, document, traceparent } = row;
        const attempts = await findAttempts(trx, id);
        return { project, job: parseJob(document), traceparent, attempts };
      }),

    /** Of the request that created the job; undefined where it was not traced. */
    async findTraceparent(id: string): Promise<string | undefined> {
      const row = await store.db
        .selectFrom("jobs")
        .select("traceparent")
        .where("id", "=", id)
        .executeTakeFirst();
      return row?.traceparent ?? undefined;
    },
  };
}
