import type { Batch } from "../../contract/jobs/batch.ts";
import type { RetriedBatch } from "../../contract/routes/batch-routes.ts";
import { ServiceError } from "../../contract/errors.ts";
import { batchId } from "../../contract/id.ts";
import { type BatchPage, type BatchQuery, batchSummary } from "../../contract/jobs/page.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { batchStatus, type BatchStatus, type JobStatus } from "../../contract/jobs/status.ts";
import { addAuditEntry, type AuditedChange } from "../people/add-audit-entry.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import { findBatch, listBatchJobs } from "./find-batch.ts";
import { listCancellableRecords } from "./find-record.ts";
import { type CreatingRequest, recordAnswer, recordCreation } from "../people/record-creation.ts";
import { insertBatch, type NewBatch } from "./insert-batch.ts";
import { listBatchArtifacts } from "./list-batch-artifacts.ts";
import { requireUploads } from "./require-uploads.ts";
import { requireQueueCapacity } from "./insert-jobs.ts";
import { cancelRecords } from "./save-records.ts";
import {
  runReadTransaction,
  type Store,
  runWriteTransaction,
  type WriteTransaction,
} from "../database/store.ts";

/** Batches of projects. */
export function batchRecords(store: Store) {
  return {
    /** For a request, as `jobs.create()`. */
    create: (project: string, newBatch: NewBatch, request: CreatingRequest<Batch> = {}) =>
      runWriteTransaction(store, async (writing) => {
        await requireQueueCapacity(writing, project, newBatch.jobs);
        await requireUploads(writing, project, newBatch.jobs);
        const created = await insertBatch(writing, project, newBatch);
        await recordCreation(writing, created, request);
        return created;
      }),

    /** Creates all or none of them. */
    createAll: (
      project: string,
      newBatches: readonly NewBatch[],
      request: CreatingRequest<RetriedBatch>,
    ) => runWriteTransaction(store, (writing) => insertAll(writing, project, newBatches, request)),

    find: (project: string, id: string) =>
      runReadTransaction(store, (trx) => findBatch(trx, project, id)),

    /** A batch with those of its jobs that have one of the statuses. */
    findWithJobs: (project: string, id: string, statuses: readonly JobStatus[]) =>
      runReadTransaction(store, async (trx) => {
        const batch = await findBatch(trx, project, id);
        return batch && { batch, jobs: await listBatchJobs(trx, id, statuses) };
      }),

    listArtifacts: (project: string, id: string) => listBatchArtifacts(store, project, id),

    /** Those whose origin is as `origin` says. */
    list: (project: string, query: BatchQuery, origin: Partial<Origin> = {}) =>
      listBatches(store, { project, ...origin }, query),

    /** Of any project. */
    findStatus: (id: string) => findBatchStatus(store, id),

    /** Cancels every job of the batch that has not ended. */
    cancel: (project: string, id: string, audit?: AuditedChange) =>
      runWriteTransaction(store, (writing) => cancelProjectBatch(writing, { project, id, audit })),
  };
}

async function insertAll(
  writing: WriteTransaction,
  project: string,
  newBatches: readonly NewBatch[],
  { answered, audit }: CreatingRequest<RetriedBatch>,
): Promise<RetriedBatch> {
  const batches: Batch[] = [];
  for (const newBatch of newBatches) {
    await requireQueueCapacity(writing, project, newBatch.jobs);
    await requireUploads(writing, project, newBatch.jobs);
    const batch = await insertBatch(writing, project, newBatch);
    await addAuditEntry(writing, audit, { subject: batch.id });
    batches.push(batch);
  }
  await recordAnswer(writing, { batches }, answered);
  return { batches };
}

async function listBatches(
  { db }: Store,
  { project, repository, commit }: { project: string } & Partial<Origin>,
  { cursor, status, suite, limit }: BatchQuery,
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
}

async function findBatchStatus({ db }: Store, id: string): Promise<BatchStatus | undefined> {
  const row = await db
    .selectFrom("batches")
    .select("status")
    .where("id", "=", id)
    .executeTakeFirst();
  return row && batchStatus.parse(row.status);
}

interface Cancellation {
  readonly project: string;
  readonly id: string;
  readonly audit: AuditedChange | undefined;
}

async function cancelProjectBatch(
  writing: WriteTransaction,
  { project, id, audit }: Cancellation,
): Promise<Batch | undefined> {
  const batch = await findBatch(writing.trx, project, id);
  if (batch === undefined) return undefined;
  await addAuditEntry(writing, audit, { subject: id });
  const { status } = batch;
  if (status === "Completed" || status === "Failed") {
    throw new ServiceError("batch_finished", `Batch "${id}" cannot be cancelled: it is ${status}`);
  }
  await cancelRecords(writing, await listCancellableRecords(writing, id));
  return findBatch(writing.trx, project, id);
}
