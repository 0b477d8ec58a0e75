import { ServiceError } from "../contract/errors.ts";
import type { Job } from "../contract/job.ts";
import type { JobPage, JobQuery } from "../contract/page.ts";
import { type JobStatus, jobStatus } from "../contract/status.ts";
import { buildPage } from "./build-page.ts";
import { findJobIds } from "./find-job-ids.ts";
import { type IdempotentAnswer, storeAnswer } from "./idempotency-records.ts";
import { cancelRecords, findRecord, parseJob } from "./save-job-records.ts";
import { insertJobs, type NewJob } from "./insert-jobs.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

export function jobRecords(store: Store) {
  return {
    async create(project: string, newJob: NewJob, answered?: IdempotentAnswer<Job>): Promise<Job> {
      return runWriteTransaction(store, async (writing) => {
        const [job] = await insertJobs(writing, { project, batchId: null }, [newJob]);
        if (job === undefined) throw new TypeError("No job was made");
        if (answered !== undefined)
          await storeAnswer(writing, answered.ref, answered.buildAnswer(job));
        return job;
      });
    },

    async find(project: string, id: string): Promise<Job | undefined> {
      const row = await store.db
        .selectFrom("jobs")
        .select("document")
        .where("id", "=", id)
        .where("project", "=", project)
        .executeTakeFirst();
      return row && parseJob(row.document);
    },

    async list(project: string, query: JobQuery): Promise<JobPage> {
      const ids = await findJobIds(store, { project, query, count: query.limit + 1 });
      const page = buildPage(
        ids.map((id) => ({ id })),
        query.limit,
      );
      if (page.entries.length === 0) return { jobs: [], nextCursor: null };
      const rows = await store.db
        .selectFrom("jobs")
        .select("document")
        .where(
          "id",
          "in",
          page.entries.map((entry) => entry.id),
        )
        .orderBy("id", "desc")
        .execute();
      return { jobs: rows.map((row) => parseJob(row.document)), nextCursor: page.nextCursor };
    },

    /** Of all projects; statuses without a job are left out. */
    countByStatus: () => countByStatus(store),

    /** Cancelled at once where no worker is at work, else Cancelling until the worker is gone. */
    cancel(project: string, id: string): Promise<Job | undefined> {
      return runWriteTransaction(store, (writing) => cancelJob(writing, project, id));
    },
  };
}

async function cancelJob(
  writing: WriteTransaction,
  project: string,
  id: string,
): Promise<Job | undefined> {
  const record = await findRecord(writing, id);
  if (record?.project !== project) return undefined;
  const { status } = record.job;
  if (status === "Completed" || status === "Failed") {
    throw new ServiceError("job_finished", `Job "${id}" cannot be cancelled: it is ${status}`);
  }
  if (status === "Cancelling" || status === "Cancelled") return record.job;
  const [cancelled] = await cancelRecords(writing, [record]);
  return cancelled?.job;
}

async function countByStatus(store: Store): Promise<ReadonlyMap<JobStatus, number>> {
  const rows = await store.db
    .selectFrom("jobs")
    .select(({ fn }) => ["status", fn.countAll<number>().as("jobs")])
    .groupBy("status")
    .execute();
  return new Map(rows.map((row) => [jobStatus.parse(row.status), Number(row.jobs)]));
}
