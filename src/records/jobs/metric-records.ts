import { decodeIdTime } from "../../contract/id.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { parseJob } from "./find-record.ts";
import type { Store } from "../database/store.ts";

/** What metrics show of the jobs of all projects. */
export function metricRecords({ db }: Store) {
  return {
    /** Statuses without a job are left out. */
    countByStatus: () => countByStatus(db),

    /** Of the jobs that wait for their first worker; undefined where none does. */
    findOldestWaitingTime: () => findOldestWaitingTime(db),

    findJob: (id: string) => findJob(db, id),
  };
}

async function countByStatus(db: Store["db"]): Promise<ReadonlyMap<JobStatus, number>> {
  const rows = await db
    .selectFrom("jobs")
    .select(({ fn }) => ["status", fn.countAll<number>().as("jobs")])
    .groupBy("status")
    .execute();
  return new Map(rows.map((row) => [jobStatus.parse(row.status), Number(row.jobs)]));
}

/** Ids begin with the time of their creation. */
async function findOldestWaitingTime(db: Store["db"]): Promise<Date | undefined> {
  const row = await db
    .selectFrom("jobs")
    .select("id")
    .where("status", "=", "Pending" satisfies JobStatus)
    .where("attempt", "=", 0)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return row && decodeIdTime(row.id);
}

async function findJob(db: Store["db"], id: string): Promise<Job | undefined> {
  const row = await db
    .selectFrom("jobs")
    .select("document")
    .where("id", "=", id)
    .executeTakeFirst();
  return row && parseJob(row.document);
}
