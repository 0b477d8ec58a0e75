import { sql } from "kysely";
import { applyEvent, type JobEvent } from "./apply-event.ts";
import { findBatch } from "./find-batch.ts";
import {
  findRecord,
  type JobRecord,
  parseJob,
  parseResource,
  type ResourceReference,
  serializeResource,
} from "./find-record.ts";
import { insertBatch, type NewBatch } from "./insert-batch.ts";
import { findMissingUploads, insertJobs, listNamedUploads, type NewJob } from "./insert-jobs.ts";
import { saveRecords } from "./save-records.ts";
import type { Batch } from "../../contract/batches/batch.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { liveStatuses } from "../../contract/jobs/status.ts";
import { type Target, target } from "../../contract/jobs/target.ts";
import { missingUploadError } from "../../contract/models/model-source.ts";
import {
  runReadTransaction,
  runWriteTransaction,
  type Store,
  type WriteTransaction,
} from "../database/store.ts";
import { queueWebhookEvents } from "../deliveries/queue-webhook-events.ts";

/** A job with its custom resource. */
export interface ClusterJob {
  readonly project: string;
  readonly job: Job;
  readonly target: Target;
  readonly resource: ResourceReference;
}

/** A batch with its custom resource. */
export interface ClusterBatch {
  readonly project: string;
  readonly batch: Batch;
  readonly resource: ResourceReference;
}

/** What happened to a job, and when; without a time, now. */
export type ObservedEvent = JobEvent & { readonly at?: string | undefined };

/** Jobs and batches that are worked on as custom resources of a cluster. */
export function clusterRecords(store: Store) {
  const { db } = store;
  return {
    /** Records a job that was created as a resource: Failed without an upload that it names. */
    createJob: (project: string, newJob: NewJob) =>
      runWriteTransaction(store, async (writing) => {
        const jobs = await insertJobs(writing, { project, batchId: null }, [newJob]);
        await queueWebhookEvents(writing, project, jobs.map(summarizeJob));
        await failWithoutUploads(writing, project, [newJob], jobs);
      }),

    /** The same for a batch, whose other jobs go on. */
    createBatch: (project: string, newBatch: NewBatch) =>
      runWriteTransaction(store, async (writing) => {
        const { jobs } = await insertBatch(writing, project, newBatch);
        await failWithoutUploads(writing, project, newBatch.jobs, jobs);
      }),

    async findJob(id: string): Promise<ClusterJob | undefined> {
      const row = await db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirst();
      const resource = parseResource(row?.resource ?? null);
      if (row === undefined || resource === null) return undefined;
      const jobTarget = target.parse(JSON.parse(row.target_document));
      return { project: row.project, job: parseJob(row.document), target: jobTarget, resource };
    },

    findBatch: (id: string): Promise<ClusterBatch | undefined> =>
      runReadTransaction(store, async (trx) => {
        const row = await trx
          .selectFrom("batches")
          .select(["project", "resource"])
          .where("id", "=", id)
          .executeTakeFirst();
        const resource = parseResource(row?.resource ?? null);
        const batch = row && (await findBatch(trx, row.project, id));
        return row && batch && resource ? { project: row.project, batch, resource } : undefined;
      }),

    /** Ids of the jobs that have not ended, in the order of their creation. */
    async listUnfinishedJobs(): Promise<string[]> {
      const rows = await db
        .selectFrom("jobs")
        .select("id")
        .where("status", "in", liveStatuses)
        .where("resource", "is not", null)
        .orderBy("id")
        .execute();
      return rows.map(({ id }) => id);
    },

    /**
     * Whether the records were created after a second, so that what was known then may lack. API
     * servers write times as whole seconds.
     */
    async wereCreatedAfter(second: string): Promise<boolean> {
      const created = sql<{ at: string }>`select min("timestamp") as at from kysely_migration`;
      const { rows } = await created.execute(db);
      return Date.parse(rows[0]?.at ?? "") >= Date.parse(second) + 1000;
    },

    linkJobResource: (id: string, resource: ResourceReference) =>
      updateResource(db, "jobs", id, resource),

    linkBatchResource: (id: string, resource: ResourceReference) =>
      updateResource(db, "batches", id, resource),

    /** Applies observed events as far as transitions allow. Returns the job after them. */
    recordEvents: (id: string, events: readonly ObservedEvent[]): Promise<Job | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const before = await findRecord(writing, id);
        if (before === undefined) return undefined;
        const job = events.reduce(
          (known, event) =>
            applyEvent(known, event, event.at === undefined ? writing.now : new Date(event.at)),
          before.job,
        );
        if (job !== before.job) await saveRecords(writing, [{ before, after: { ...before, job } }]);
        return job;
      }),
  };
}

async function updateResource(
  db: Store["db"],
  table: "jobs" | "batches",
  id: string,
  resource: ResourceReference,
): Promise<void> {
  await db
    .updateTable(table)
    .set({ resource: serializeResource(resource) })
    .where("id", "=", id)
    .execute();
}

/**
 * Fails new jobs of resources that name uploads which the project does not have, before a worker
 * can begin. A job whose work has begun had them.
 */
async function failWithoutUploads(
  writing: WriteTransaction,
  project: string,
  newJobs: readonly NewJob[],
  created: readonly Pick<Job, "id">[],
): Promise<void> {
  const named = listNamedUploads(newJobs.filter(({ hasBegun }) => !hasBegun));
  const missing = new Set(await findMissingUploads(writing.trx, project, named));
  const changes: { before: JobRecord; after: JobRecord }[] = [];
  for (const [i, newJob] of newJobs.entries()) {
    const sha256 = listNamedUploads([newJob]).find((hash) => missing.has(hash));
    if (sha256 === undefined || newJob.hasBegun) continue;
    const before = await findRecord(writing, created[i]?.id ?? "");
    if (before === undefined) continue;
    const { code, message } = missingUploadError(sha256);
    const failure = { type: "failure", error: { code, message } } as const;
    changes.push({
      before,
      after: { ...before, job: applyEvent(before.job, failure, writing.now) },
    });
  }
  await saveRecords(writing, changes);
}
