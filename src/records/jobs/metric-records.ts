import { decodeIdTime } from "../../contract/id.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { parseJob } from "./find-record.ts";
import type { Store } from "../database/store.ts";

/** What metrics show of the jobs of all projects. */
export function metricRecords({ db }: Store) {
  return {
    /** Statuses without a job are left out. */
    async countByStatus(): Promise<ReadonlyMap<JobStatus, number>> {
      const rows = await db
        .selectFrom("jobs")
        .select(({ fn }) => ["status", fn.countAll<number>().as("jobs")])
        .groupBy("status")
        .execute();
      return new Map(rows.map((row) => [jobStatus.parse(row.status), Number(row.jobs)]));
    },

    /** Of the jobs that wait for their first worker; undefined where none does. */
    async findOldestWaitingTime(): Promise<Date | undefined> {
      const row = await db
        .selectFrom("jobs")
        .select("id")
        .where("status", "=", "Pending" satisfies JobStatus)
        .where("attempt", "=", 0)
        .orderBy("id")
        .limit(1)
        .executeTakeFirst();
      // Ids begin with the time of their creation.
      return row && decodeIdTime(row.id);
    },

    async findJob(id: string): Promise<Job | undefined> {
      const row = await db
        .selectFrom("jobs")
        .select("document")
        .where("id", "=", id)
        .executeTakeFirst();
      return row && parseJob(row.document);
    },
  };
}
