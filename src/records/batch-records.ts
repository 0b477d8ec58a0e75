import { type Batch, batch as batchSchema } from "../contract/batch.ts";
import { zeroCounts } from "../contract/batch-status.ts";
import { ServiceError } from "../contract/errors.ts";
import { batchId, newId } from "../contract/id.ts";
import { type BatchPage, type BatchQuery, batchSummary } from "../contract/page.ts";
import type { Revision } from "../contract/revision.ts";
import { batchStatus, type BatchStatus, type JobKind } from "../contract/status.ts";
import { findBaselines } from "./save-baselines.ts";
import { buildPage, parseCursor } from "./build-page.ts";
import { type IdempotentAnswer, storeAnswer } from "./idempotency-records.ts";
import { type ResourceReference, serializeResource } from "./resource-reference.ts";
import { cancelRecords, listUnfinishedRecords } from "./save-job-records.ts";
import { insertJobs, type NewJob } from "./insert-jobs.ts";
import { insertReport, type NewReport, replaceReportJobs } from "./insert-report.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

export interface NewBatch {
  readonly name: string;
  readonly suite: string | null;
  readonly revision: Revision | null;
  readonly kind: JobKind;
  readonly failFast: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** In the order of models × targets. */
  readonly jobs: readonly NewJob[];
  /** Given where the batch was made elsewhere. */
  readonly id?: string;
  readonly createdAt?: string;
  /** The custom resource that holds the batch. */
  readonly resource?: ResourceReference;
  /** Asks for a report, or takes the place of jobs in one. */
  readonly report?: NewReport;
}

export function batchRecords(store: Store) {
  return {
    async create(
      project: string,
      newBatch: NewBatch,
      answered?: IdempotentAnswer<Batch>,
    ): Promise<Batch> {
      return runWriteTransaction(store, async (writing) => {
        const created = await insertBatch(writing, project, newBatch);
        if (answered !== undefined)
          await storeAnswer(writing, answered.ref, answered.buildAnswer(created));
        return created;
      });
    },

    async find(project: string, id: string): Promise<Batch | undefined> {
      return store.db.transaction().execute((trx) => findBatch(trx, project, id));
    },

    async list(project: string, query: BatchQuery): Promise<BatchPage> {
      let rows = store.db
        .selectFrom("batches")
        .select(["id", "document"])
        .where("project", "=", project);
      if (query.cursor !== undefined)
        rows = rows.where("id", "<", parseCursor(query.cursor, batchId));
      if (query.status !== undefined) rows = rows.where("status", "in", query.status);
      if (query.suite !== undefined) rows = rows.where("suite", "=", query.suite);
      const found = await rows
        .orderBy("id", "desc")
        .limit(query.limit + 1)
        .execute();
      const { entries, nextCursor } = buildPage(found, query.limit);
      return {
        batches: entries.map((row) => batchSummary.parse(JSON.parse(row.document))),
        nextCursor,
      };
    },

    async findStatus(id: string): Promise<BatchStatus | undefined> {
      const row = await store.db
        .selectFrom("batches")
        .select("status")
        .where("id", "=", id)
        .executeTakeFirst();
      return row && batchStatus.parse(row.status);
    },

    async cancel(project: string, id: string): Promise<Batch | undefined> {
      return runWriteTransaction(store, async (writing) => {
        const found = await findBatch(writing.trx, project, id);
        if (found === undefined) return undefined;
        if (found.status === "Completed" || found.status === "Failed") {
          throw new ServiceError(
            "batch_finished",
            `Batch "${id}" cannot be cancelled: it is ${found.status}`,
          );
        }
        await cancelRecords(writing, await listUnfinishedRecords(writing, id));
        return findBatch(writing.trx, project, id);
      });
    },
  };
}

export async function findBatch(
  trx: WriteTransaction["trx"],
  project: string,
  id: string,
): Promise<Batch | undefined> {
  const row = await trx
    .selectFrom("batches")
    .select("document")
    .where("id", "=", id)
    .where("project", "=", project)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const jobs = await trx
    .selectFrom("jobs")
    .select(["id", "model_name as model", "target", "status", "gates_failed"])
    .where("batch_id", "=", id)
    .orderBy("id")
    .execute();
  return batchSchema.parse({
    ...batchSummary.parse(JSON.parse(row.document)),
    jobs: jobs.map(({ gates_failed, ...job }) => ({ ...job, gatesFailed: gates_failed === 1 })),
  });
}

/** The jobs of the batch, each with its baseline. */
async function attachBaselines(
  writing: WriteTransaction,
  project: string,
  { suite, revision, jobs }: NewBatch,
) {
  if (suite === null || revision === null) return jobs;
  const baselines = await findBaselines(writing, { project, suite, base: revision.base }, jobs);
  return jobs.map((newJob, i) => ({ ...newJob, baseline: baselines[i] ?? null }));
}

async function insertBatch(
  writing: WriteTransaction,
  project: string,
  newBatch: NewBatch,
): Promise<Batch> {
  const { jobs: newJobs, labels, resource, report, ...named } = newBatch;
  const { id = newId("batch", writing.now), createdAt = writing.now.toISOString() } = newBatch;
  const summary = batchSummary.parse({
    ...named,
    id,
    status: "Pending",
    labels,
    createdAt,
    finishedAt: null,
    counts: { ...zeroCounts, Pending: newJobs.length },
    gatesFailed: 0,
  });
  await writing.trx
    .insertInto("batches")
    .values({
      id,
      project,
      status: summary.status,
      suite: summary.suite,
      fail_fast: summary.failFast ? 1 : 0,
      document: JSON.stringify(summary),
      resource: serializeResource(resource),
    })
    .execute();
  const jobs = await insertJobs(
    writing,
    { project, batchId: id },
    await attachBaselines(writing, project, newBatch),
  );
  const jobIds = jobs.map((job) => job.id);
  if (report && "settings" in report)
    await insertReport(writing, { ...report, id, project, jobIds });
  if (report && "repeats" in report) await replaceReportJobs(writing, { ...report, jobIds });
  return {
    ...summary,
    jobs: jobs.map((job) => ({
      id: job.id,
      model: job.model.name,
      target: job.target,
      status: job.status,
      gatesFailed: false,
    })),
  };
}
