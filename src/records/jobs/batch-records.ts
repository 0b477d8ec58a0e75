import { setImmediate as nextTurn } from "node:timers/promises";
import type { z } from "zod";
import {
  type Batch,
  type BatchPage,
  type BatchQuery,
  batchSummary,
} from "../../contract/batches/batch.ts";
import type { RetriedBatch } from "../../contract/routes/batch-routes.ts";
import { ServiceError } from "../../contract/errors.ts";
import { batchId } from "../../contract/id.ts";
import { job } from "../../contract/jobs/job.ts";
import type { Origin } from "../../contract/people/principal.ts";
import {
  batchStatus,
  type BatchStatus,
  type JobStatus,
  jobStatus,
} from "../../contract/jobs/status.ts";
import { addAuditEntry, type AuditedChange, findRequester } from "../people/audit-records.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import { findBatch } from "./find-batch.ts";
import { listCancellableRecords } from "./find-record.ts";
import { createOnce, type CreatingRequest } from "../people/idempotency-records.ts";
import { insertBatch, type NewBatch } from "./insert-batch.ts";
import { requireQueueCapacity, requireUploads } from "./insert-jobs.ts";
import { cancelRecords } from "./save-records.ts";
import { runReadTransaction, runWriteTransaction, type Store } from "../database/store.ts";

const producingJob = job.pick({
  id: true,
  name: true,
  status: true,
  createdAt: true,
  finishedAt: true,
  artifacts: true,
});

/** A job with the files that it produced. */
export type ProducingJob = z.infer<typeof producingJob>;

const repeatableJob = job.pick({
  id: true,
  model: true,
  target: true,
  recipe: true,
  gateLimits: true,
  dryRun: true,
  deadlineSeconds: true,
});

/** What a job is made of that does the same again. */
export type RepeatableJob = z.infer<typeof repeatableJob>;

export function batchRecords(store: Store) {
  const { db } = store;
  return {
    /** For a request, as `jobs.create()`. */
    create: (project: string, newBatch: NewBatch, { idempotency, audit }: CreatingRequest = {}) =>
      createOnce(store, idempotency, async (writing) => {
        await requireQueueCapacity(writing, project, newBatch.jobs);
        await requireUploads(writing, project, newBatch.jobs);
        const created = await insertBatch(writing, project, newBatch);
        await addAuditEntry(writing, audit, created.id);
        return created;
      }),

    /** Creates all or none of them. */
    createAll: (
      project: string,
      newBatches: readonly NewBatch[],
      { idempotency, audit }: CreatingRequest,
    ): Promise<RetriedBatch> =>
      createOnce(store, idempotency, async (writing) => {
        const batches: Batch[] = [];
        for (const newBatch of newBatches) {
          await requireQueueCapacity(writing, project, newBatch.jobs);
          await requireUploads(writing, project, newBatch.jobs);
          const batch = await insertBatch(writing, project, newBatch);
          await addAuditEntry(writing, audit, batch.id);
          batches.push(batch);
        }
        return { batches };
      }),

    find: (project: string, id: string) =>
      runReadTransaction(store, (trx) => findBatch(trx, project, id)),

    /** What is repeated of the jobs of a batch that have one of the statuses, in its order. */
    async listRepeatable(
      project: string,
      id: string,
      statuses: readonly JobStatus[],
    ): Promise<RepeatableJob[]> {
      const documents = readDocuments(db, { project, id, statuses });
      return Array.fromAsync(documents, (document) => repeatableJob.parse(document));
    },

    /** The jobs of the batch that have artifacts, in its order, each when it is asked for. */
    async *readProducing(
      project: string,
      id: string,
      signal?: AbortSignal,
    ): AsyncGenerator<ProducingJob, void> {
      for await (const document of readDocuments(db, {
        project,
        id,
        statuses: jobStatus.options,
      })) {
        signal?.throwIfAborted();
        const job = producingJob.parse(document);
        if (job.artifacts.length > 0) yield job;
      }
    },

    /** Those whose origin is as `origin` says. */
    async list(
      project: string,
      { cursor, status, suite, limit }: BatchQuery,
      { repository, commit }: Partial<Origin> = {},
    ): Promise<BatchPage> {
      let rows = db.selectFrom("batches").select(["id", "document"]).where("project", "=", project);
      if (repository !== undefined) rows = rows.where("repository_id", "=", repository);
      if (commit !== undefined) rows = rows.where("commit_sha", "=", commit);
      if (cursor !== undefined) rows = rows.where("id", "<", parseCursor(cursor, batchId));
      if (status !== undefined) rows = rows.where("status", "in", status);
      if (suite !== undefined) rows = rows.where("suite", "=", suite);
      const page = await rows
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      const { entries, nextCursor } = buildPage(page, limit);
      const batches = entries.map((row) => batchSummary.parse(JSON.parse(row.document)));
      return { batches, nextCursor };
    },

    /** Of any project. */
    async findStatus(id: string): Promise<BatchStatus | undefined> {
      const row = await db
        .selectFrom("batches")
        .select("status")
        .where("id", "=", id)
        .executeTakeFirst();
      return row && batchStatus.parse(row.status);
    },

    /** Cancels every job of the batch that has not ended. */
    cancel: (project: string, id: string, audit?: AuditedChange): Promise<Batch | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const batch = await findBatch(writing.trx, project, id);
        if (batch === undefined) return undefined;
        await addAuditEntry(writing, audit, id);
        const { status } = batch;
        if (status === "Completed" || status === "Failed") {
          const message = `Batch "${id}" cannot be cancelled: it is ${status}`;
          throw new ServiceError("batch_finished", message);
        }
        const records = await listCancellableRecords(writing, id);
        await cancelRecords(writing, records, findRequester(audit));
        return findBatch(writing.trx, project, id);
      }),
  };
}

/**
 * The documents of a batch's jobs. One is read at a time, since each may have a thousand files; and
 * others are answered between two, since SQLite answers at once.
 */
async function* readDocuments(
  db: Store["db"],
  {
    project,
    id,
    statuses,
  }: {
    readonly project: string;
    readonly id: string;
    readonly statuses: readonly JobStatus[];
  },
): AsyncGenerator<unknown, void> {
  for (let last = ""; ;) {
    const row = await db
      .selectFrom("jobs")
      .select(["id", "document"])
      .where("project", "=", project)
      .where("batch_id", "=", id)
      .where("status", "in", statuses)
      .where("id", ">", last)
      .orderBy("id")
      .limit(1)
      .executeTakeFirst();
    if (row === undefined) return;
    yield JSON.parse(row.document);
    last = row.id;
    await nextTurn();
  }
}
