import type { Batch } from "../contract/batch.ts";
import type { Job } from "../contract/job.ts";
import { type Target, target } from "../contract/target.ts";
import { applyEvent, type JobEvent } from "./apply-event.ts";
import { findBatch } from "./batch-records.ts";
import { type ResourceReference, parseResource, serializeResource } from "./resource-reference.ts";
import { findRecord, parseJob, saveRecords } from "./save-job-records.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** A job that a custom resource holds. */
export interface ClusterJob {
  readonly project: string;
  readonly job: Job;
  readonly target: Target;
  readonly resource: ResourceReference;
}

/** A batch that a custom resource holds. */
export interface ClusterBatch {
  readonly project: string;
  readonly batch: Batch;
  readonly resource: ResourceReference;
}

/** What happened to a job, and when; without a time, now. */
export type ObservedEvent = JobEvent & { readonly at?: string | undefined };

/** Jobs and batches that are worked on as custom resources of a cluster. */
export function clusterRecords(store: Store) {
  return {
    async findJob(id: string): Promise<ClusterJob | undefined> {
      const row = await store.db
        .selectFrom("jobs")
        .selectAll()
        .where("id", "=", id)
        .executeTakeFirst();
      const resource = parseResource(row?.resource ?? null);
      if (row === undefined || resource === null) return undefined;
      const jobTarget = target.parse(JSON.parse(row.target_document));
      return { project: row.project, job: parseJob(row.document), target: jobTarget, resource };
    },

    async findBatch(id: string): Promise<ClusterBatch | undefined> {
      return store.db.transaction().execute(async (trx) => {
        const row = await trx
          .selectFrom("batches")
          .select(["project", "resource"])
          .where("id", "=", id)
          .executeTakeFirst();
        const resource = parseResource(row?.resource ?? null);
        const batch = row && (await findBatch(trx, row.project, id));
        return row && batch && resource ? { project: row.project, batch, resource } : undefined;
      });
    },

    /** Ids of the jobs that have not ended, in the order in which they were made. */
    async listUnfinishedJobs(): Promise<string[]> {
      const rows = await store.db
        .selectFrom("jobs")
        .select("id")
        .where("status", "in", ["Pending", "Sharding", "Optimizing", "Cancelling"])
        .where("resource", "is not", null)
        .orderBy("id")
        .execute();
      return rows.map((row) => row.id);
    },

    /** Notes which custom resource holds the job. */
    async linkJobResource(id: string, resource: ResourceReference): Promise<void> {
      await store.db
        .updateTable("jobs")
        .set({ resource: serializeResource(resource) })
        .where("id", "=", id)
        .execute();
    },

    /** Notes which custom resource holds the batch. */
    async linkBatchResource(id: string, resource: ResourceReference): Promise<void> {
      await store.db
        .updateTable("batches")
        .set({ resource: serializeResource(resource) })
        .where("id", "=", id)
        .execute();
    },

    /** Applies what is known of a job besides what its workers told, as far as its transitions allow; gives the job after it. */
    recordEvents(id: string, events: readonly ObservedEvent[]): Promise<Job | undefined> {
      return runWriteTransaction(store, (writing) => recordJobEvents(writing, id, events));
    },
  };
}

async function recordJobEvents(
  writing: WriteTransaction,
  id: string,
  events: readonly ObservedEvent[],
): Promise<Job | undefined> {
  const before = await findRecord(writing, id);
  if (before === undefined) return undefined;
  const job = events.reduce(
    (known, event) =>
      applyEvent(known, event, event.at === undefined ? writing.now : new Date(event.at)),
    before.job,
  );
  if (job !== before.job) await saveRecords(writing, [{ before, after: { ...before, job } }]);
  return job;
}
