import { z } from "zod";
import { type Job, job as jobSchema } from "../../contract/jobs/job.ts";
import { liveStatuses } from "../../contract/jobs/status.ts";
import type { WriteTransaction } from "../database/store.ts";

/** A job and what the service records of its workers. */
export interface JobRecord {
  readonly project: string;
  readonly job: Job;
  /** Number of attempts so far. */
  readonly attempt: number;
  readonly nextLogSeq: number;
  readonly resource: ResourceReference | null;
  /** Whether a worker may be running: always where a custom resource owns the job. */
  readonly live: boolean;
}

interface JobRow {
  project: string;
  document: string;
  attempt: number;
  next_log_seq: number;
  resource: string | null;
  live: number;
}

const cancellableStatuses = liveStatuses.filter((status) => status !== "Cancelling");

export async function findRecord(
  writing: WriteTransaction,
  jobId: string,
): Promise<JobRecord | undefined> {
  const row = await selectRecords(writing).where("jobs.id", "=", jobId).executeTakeFirst();
  return row && parseJobRow(row);
}

/** The jobs of a batch that have neither ended nor been cancelled. */
export async function listCancellableRecords(
  writing: WriteTransaction,
  batchId: string,
): Promise<JobRecord[]> {
  const rows = await selectRecords(writing)
    .where("jobs.batch_id", "=", batchId)
    .where("jobs.status", "in", cancellableStatuses)
    .execute();
  return rows.map(parseJobRow);
}

function selectRecords(writing: WriteTransaction) {
  return writing.trx.selectFrom("jobs").select((eb) => [
    "jobs.project",
    "jobs.document",
    "jobs.attempt",
    "jobs.next_log_seq",
    "jobs.resource",
    eb
      .selectFrom("attempts")
      .select((count) => count.fn.countAll<number>().as("count"))
      .whereRef("attempts.job_id", "=", "jobs.id")
      .where("attempts.ended_at", "is", null)
      .$asScalar()
      .$notNull()
      .as("live"),
  ]);
}

function parseJobRow(row: JobRow): JobRecord {
  return {
    project: row.project,
    job: parseJob(row.document),
    attempt: row.attempt,
    nextLogSeq: row.next_log_seq,
    resource: parseResource(row.resource),
    live: Number(row.live) > 0 || row.resource !== null,
  };
}

export function parseJob(document: string): Job {
  return jobSchema.parse(JSON.parse(document));
}

const resourceReference = z.object({
  namespace: z.string(),
  name: z.string(),
  /** Null until the resource exists in the cluster. */
  uid: z.string().nullable(),
  /** Whether the batch was created as this resource, and not by a request. */
  isSource: z.boolean().optional(),
  /** Of a resource that is still to be created. */
  spec: z.record(z.string(), z.unknown()).optional(),
});
/** The custom resource in a cluster that a job or batch is worked on as. */
export type ResourceReference = z.infer<typeof resourceReference>;

export function serializeResource(resource: ResourceReference | undefined): string | null {
  return resource === undefined ? null : JSON.stringify(resource);
}

export function parseResource(text: string | null): ResourceReference | null {
  return text === null ? null : resourceReference.parse(JSON.parse(text));
}
