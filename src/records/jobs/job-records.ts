import { countMatches, findJobs, type JobSearch } from "./find-jobs.ts";
import { findRecord, parseJob } from "./find-record.ts";
import { insertJobs, type NewJob, requireQueueCapacity } from "./insert-jobs.ts";
import { type JobTextReader, readDocuments, readSummaries } from "./read-job-texts.ts";
import { requireUploads } from "./require-uploads.ts";
import { cancelRecords } from "./save-records.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/job-summary.ts";
import type { JobCountsQuery, JobQuery } from "../../contract/jobs/page.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { buildPage } from "../database/rows.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { queueWebhookEvents } from "../deliveries/queue-webhook-events.ts";
import { addAuditEntry, type AuditedChange } from "../people/add-audit-entry.ts";
import { type CreatingRequest, recordCreation } from "../people/record-creation.ts";

/** Jobs of projects. */
export function jobRecords(store: Store) {
  return {
    /** For a request: a job that was created as a resource is recorded by `cluster.createJob()`. */
    create: (project: string, newJob: NewJob, request: CreatingRequest<Job> = {}) =>
      runWriteTransaction(store, async (writing) => {
        await requireQueueCapacity(writing, project, [newJob]);
        await requireUploads(writing, project, [newJob]);
        const [job] = await insertJobs(writing, { project, batchId: null }, [newJob]);
        if (job === undefined) throw new TypeError("No job was created");
        await queueWebhookEvents(writing, project, [summarizeJob(job)]);
        await recordCreation(writing, job, request);
        return job;
      }),

    find: (project: string, id: string) => findProjectJob(store, project, id),

    /** Undefined where there is no such job. */
    findStatus: (id: string) => findJobStatus(store, id),

    /** Documents of those whose origin is as `origin` says. */
    list: (project: string, query: JobQuery, origin: Partial<Origin> = {}) =>
      listJobDocuments(store, { project, query, origin }, readDocuments),

    /** Summaries of the same ones. */
    listSummaries: (project: string, query: JobQuery, origin: Partial<Origin> = {}) =>
      listJobDocuments(store, { project, query, origin }, readSummaries),

    /** How many of them a list without `status` has in each status. */
    count: (project: string, query: JobCountsQuery, origin: Partial<Origin> = {}) =>
      countMatches(store, { project, query, origin }),

    /** Reads a job, to find out whether records can be read. */
    check: () => store.db.selectFrom("jobs").select("id").limit(1).execute(),

    /** Cancelled at once where no worker may be running, else Cancelling until the worker stops. */
    cancel: (project: string, id: string, audit?: AuditedChange) =>
      runWriteTransaction(store, (writing) => cancelJob(writing, { project, id, audit })),
  };
}

async function findProjectJob({ db }: Store, project: string, id: string) {
  const row = await db
    .selectFrom("jobs")
    .select("document")
    .where("id", "=", id)
    .where("project", "=", project)
    .executeTakeFirst();
  return row && parseJob(row.document);
}

async function findJobStatus({ db }: Store, id: string): Promise<JobStatus | undefined> {
  const row = await db.selectFrom("jobs").select("status").where("id", "=", id).executeTakeFirst();
  return row && jobStatus.parse(row.status);
}

interface Cancellation {
  readonly project: string;
  readonly id: string;
  readonly audit: AuditedChange | undefined;
}

async function cancelJob(
  writing: WriteTransaction,
  { project, id, audit }: Cancellation,
): Promise<Job | undefined> {
  const record = await findRecord(writing, id);
  if (record?.project !== project) return undefined;
  await addAuditEntry(writing, audit, { subject: id });
  const { status } = record.job;
  if (status === "Completed" || status === "Failed") {
    throw new ServiceError("job_finished", `Job "${id}" cannot be cancelled: it is ${status}`);
  }
  if (status === "Cancelling" || status === "Cancelled") return record.job;
  const [cancelled] = await cancelRecords(writing, [record]);
  return cancelled?.job;
}

interface JobDocuments {
  /** The jobs as the contract defines them, or their summaries, as JSON texts. */
  readonly documents: readonly string[];
  readonly nextCursor: string | null;
}

/** A page of the jobs that match: nothing parses what a list only passes on. */
async function listJobDocuments(
  store: Store,
  search: JobSearch & { readonly query: JobQuery },
  read: JobTextReader,
): Promise<JobDocuments> {
  const { limit } = search.query;
  const found = await findJobs(store, search, { read, count: limit + 1 });
  const { entries, nextCursor } = buildPage(found, limit);
  return { documents: entries.map(({ text }) => text), nextCursor };
}
