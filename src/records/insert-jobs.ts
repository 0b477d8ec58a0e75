import type { Insertable } from "kysely";
import type { Baseline } from "../contract/baseline.ts";
import type { GateLimits } from "../contract/gate.ts";
import { batchJobId, newId } from "../contract/id.ts";
import type { Job } from "../contract/job.ts";
import type { ModelReference } from "../contract/model.ts";
import type { Recipe } from "../contract/recipe.ts";
import type { JobKind } from "../contract/status.ts";
import type { Target } from "../contract/target.ts";
import { pendingCause, emptyTelemetry } from "./apply-event.ts";
import { type ResourceReference, serializeResource } from "./resource-reference.ts";
import { jobColumns } from "./save-job-records.ts";
import type { Schema } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

/** A job to be made: the request with everything resolved. */
export interface NewJob {
  readonly kind: JobKind;
  readonly name: string;
  readonly model: ModelReference & { readonly name: string };
  readonly target: Target;
  readonly recipe: Recipe;
  readonly gateLimits: GateLimits;
  /** Plan alone. */
  readonly dryRun: boolean;
  readonly deadlineSeconds?: number | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** What the job is compared with. */
  readonly baseline?: Baseline | null;
  /** Given where the job was made elsewhere. A batch's jobs have ids that follow from the batch's. */
  readonly id?: string;
  readonly createdAt?: string;
  /** The custom resource that holds the job. */
  readonly resource?: ResourceReference;
}

interface JobScope {
  readonly project: string;
  readonly batchId: string | null;
}

const rowsPerInsert = 200;

/** Makes jobs that all wait for a worker, in the given order. */
export async function insertJobs(
  writing: WriteTransaction,
  owner: JobScope,
  newJobs: readonly NewJob[],
): Promise<Job[]> {
  const jobs = newJobs.map((newJob, i) =>
    pendingJob(newJob, owner.batchId, { index: i, now: writing.now }),
  );
  const jobRows = jobs.map((job, i): Insertable<Schema["jobs"]> => ({
    id: job.id,
    project: owner.project,
    kind: job.kind,
    batch_id: job.batchId,
    model_name: job.model.name,
    model_source: job.model.source,
    target: job.target,
    attempt: 0,
    next_log_seq: 1,
    target_document: JSON.stringify(newJobs[i]?.target),
    resource: serializeResource(newJobs[i]?.resource),
    ...jobColumns(job),
  }));
  const labelRows = jobs.flatMap((job) =>
    Object.entries(job.labels).map(([key, value]) => ({
      job_id: job.id,
      project: owner.project,
      key,
      value,
    })),
  );
  for (const chunk of chunkRows(jobRows))
    await writing.trx.insertInto("jobs").values(chunk).execute();
  for (const chunk of chunkRows(labelRows))
    await writing.trx.insertInto("job_labels").values(chunk).execute();
  return jobs;
}

function pendingJob(
  newJob: NewJob,
  batchId: string | null,
  { index, now }: { index: number; now: Date },
): Job {
  const at = newJob.createdAt ?? now.toISOString();
  return {
    id: batchId === null ? (newJob.id ?? newId("job", now)) : batchJobId(batchId, index),
    kind: newJob.kind,
    name: newJob.name,
    status: "Pending",
    statusReason: pendingCause.reason,
    statusMessage: pendingCause.message,
    batchId,
    model: { ...newJob.model, bytes: null, actualSha256: null },
    target: newJob.target.name,
    recipe: newJob.recipe,
    gateLimits: newJob.gateLimits,
    dryRun: newJob.dryRun,
    ...(newJob.deadlineSeconds !== undefined && { deadlineSeconds: newJob.deadlineSeconds }),
    labels: { ...newJob.labels },
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    finishedAt: null,
    transitions: [{ status: "Pending", at, ...pendingCause }],
    telemetry: emptyTelemetry,
    artifacts: [],
    baseline: newJob.baseline ?? null,
    gates: [],
    error: null,
  };
}

function* chunkRows<T>(rows: readonly T[]): Generator<T[]> {
  for (let start = 0; start < rows.length; start += rowsPerInsert)
    yield rows.slice(start, start + rowsPerInsert);
}
