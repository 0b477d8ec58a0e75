import { countMatches, findJobs, type JobSearch } from "./find-jobs.ts";
import { findModelVersions } from "./find-model-versions.ts";
import { findRecord, parseJob } from "./find-record.ts";
import { insertJobs, type NewJob, requireQueueCapacity, requireUploads } from "./insert-jobs.ts";
import { documentTexts, type JobTexts, summaryTexts } from "./read-job-texts.ts";
import { cancelRecords } from "./save-records.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import type { JobCountsQuery, JobQuery } from "../../contract/jobs/job-lists.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { buildPage, countFitting } from "../database/rows.ts";
import { runReadTransaction, runWriteTransaction, type Store } from "../database/store.ts";
import { queueWebhookEvents } from "../deliveries/queue-webhook-events.ts";
import { addAuditEntry, type AuditedChange, findRequester } from "../people/audit-records.ts";
import { createOnce, type CreatingRequest } from "../people/idempotency-records.ts";

export function jobRecords(store: Store) {
  const { db } = store;
  return {
    /** For a request: a job that was created as a resource is recorded by `cluster.createJob()`. */
    create: (project: string, newJob: NewJob, { idempotency, audit }: CreatingRequest = {}) =>
      createOnce(store, idempotency, async (writing) => {
        await requireQueueCapacity(writing, project, [newJob]);
        await requireUploads(writing, project, [newJob]);
        const [job] = await insertJobs(writing, { project, batchId: null }, [newJob]);
        if (job === undefined) throw new TypeError("No job was created");
        await queueWebhookEvents(writing, project, [summarizeJob(job)]);
        await addAuditEntry(writing, audit, job.id);
        return job;
      }),

    async find(project: string, id: string): Promise<Job | undefined> {
      const row = await db
        .selectFrom("jobs")
        .select("document")
        .where("id", "=", id)
        .where("project", "=", project)
        .executeTakeFirst();
      return row && parseJob(row.document);
    },

    /** A job as the text of its document, which nothing parses that only passes it on. */
    async findText(id: string) {
      const row = await db
        .selectFrom("jobs")
        .select(["project", "status", "document"])
        .where("id", "=", id)
        .executeTakeFirst();
      return row && { ...row, status: jobStatus.parse(row.status) };
    },

    /** Undefined if there is no such job. */
    async findStatus(id: string): Promise<JobStatus | undefined> {
      const row = await db
        .selectFrom("jobs")
        .select("status")
        .where("id", "=", id)
        .executeTakeFirst();
      return row && jobStatus.parse(row.status);
    },

    /** Documents of those whose origin is as `origin` says. */
    list: (project: string, query: JobQuery, origin: Partial<Origin> = {}) =>
      runReadTransaction(store, (trx) => listJobs(trx, { project, query, origin }, documentTexts)),

    /** Summaries of the same ones. */
    listSummaries: (project: string, query: JobQuery, origin: Partial<Origin> = {}) =>
      runReadTransaction(store, (trx) => listJobs(trx, { project, query, origin }, summaryTexts)),

    /** The models that they name. */
    listModelVersions: (project: string, origin: Partial<Origin> = {}) =>
      findModelVersions(store, { project, origin, limit: limits.modelVersions }),

    /** How many of them a list without `status` has in each status. */
    count: (project: string, query: JobCountsQuery, origin: Partial<Origin> = {}) =>
      runReadTransaction(store, (trx) => countMatches(trx, { project, query, origin })),

    /** Reads a job, to find out whether records can be read. */
    check: () => db.selectFrom("jobs").select("id").limit(1).execute(),

    /** Cancelled at once where no worker may be running, else Cancelling until the worker stops. */
    cancel: (project: string, id: string, audit?: AuditedChange): Promise<Job | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const record = await findRecord(writing, id);
        if (record?.project !== project) return undefined;
        await addAuditEntry(writing, audit, id);
        const { status } = record.job;
        if (status === "Completed" || status === "Failed") {
          const message = `Job "${id}" cannot be cancelled: it is ${status}`;
          throw new ServiceError("job_finished", message);
        }
        if (status === "Cancelling" || status === "Cancelled") return record.job;
        const [cancelled] = await cancelRecords(writing, [record], findRequester(audit));
        return cancelled?.job;
      }),
  };
}

/**
 * A page of the jobs that match, as JSON texts: nothing parses what a list only passes on. They are
 * measured before they are read, which what is in memory at once depends on.
 */
async function listJobs(
  db: Store["db"],
  search: JobSearch & { readonly query: JobQuery },
  texts: JobTexts,
) {
  const { limit } = search.query;
  const found = await findJobs(db, search, { texts, count: limit + 1 });
  const fitting = countFitting(found, limits.pageBytes);
  const { entries, nextCursor } = buildPage(found, Math.min(limit, fitting));
  if (entries.length === 0) return { documents: [], nextCursor };
  const ids = entries.map(({ id }) => id);
  const jobs = db.selectFrom("jobs").where("jobs.id", "in", ids).orderBy("jobs.id", "desc");
  const read = await texts.read(jobs);
  return { documents: read.map(({ text }) => text), nextCursor };
}
