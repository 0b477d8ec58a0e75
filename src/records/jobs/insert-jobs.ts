import type { Insertable } from "kysely";
import { emptyTelemetry } from "./apply-event.ts";
import { type ResourceReference, serializeResource } from "./find-record.ts";
import { batchJobId, newId } from "../../contract/id.ts";
import type { Baseline } from "../../contract/jobs/baseline.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import { type GateLimits, hasFailedGate } from "../../contract/jobs/gate.ts";
import type { Job, JobRequest } from "../../contract/jobs/job.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { statusCause } from "../../contract/jobs/status-reasons.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import type { Target } from "../../contract/jobs/target.ts";
import type { ModelReference } from "../../contract/models/model.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { quotaError } from "../../contract/people/usage.ts";
import { addWaitingJobs } from "../database/counters.ts";
import { chunkRows } from "../database/rows.ts";
import type { Schema } from "../database/schema.ts";
import type { Store, WriteTransaction } from "../database/store.ts";
import { originColumns } from "../people/owner-records.ts";
import { readWaitingJobs } from "../people/usage-records.ts";
import { listDataSources } from "../../contract/jobs/recipe-data.ts";
import { ServiceError } from "../../contract/errors.ts";
import {
  findUploadHash,
  isFolderSource,
  missingUploadError,
} from "../../contract/models/model-source.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { limits } from "../../contract/limits.ts";

/** A job to create: the request with everything resolved. */
export interface NewJob {
  readonly kind: JobKind;
  readonly name: string;
  readonly model: ModelReference & { readonly name: string };
  readonly target: Target;
  readonly recipe: Recipe;
  readonly gateLimits: GateLimits;
  /** Only plan. */
  readonly dryRun: boolean;
  readonly deadlineSeconds?: number | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdBy?: CreatedBy;
  /** What the job is compared with. */
  readonly baseline?: Baseline | null;
  /**
   * Present where the job was created as a resource. The ids of a batch's jobs follow from its own.
   */
  readonly id?: string;
  readonly createdAt?: string;
  readonly resource?: ResourceReference;
  /** Of a job that was created as a resource: whether a worker has worked on it. */
  readonly hasBegun?: boolean;
  /** The workflow that it comes from. */
  readonly origin?: Origin | null;
  /** Of the span of the request that creates it, where the service traces requests. */
  readonly traceparent?: string | undefined;
}

/** What all jobs of one request have in common. */
export interface JobFields extends Pick<
  JobRequest,
  "gates" | "labels" | "dryRun" | "deadlineSeconds"
> {
  readonly kind: JobKind;
  readonly name?: string | undefined;
}

/** A job of a request, for one of its models and one of its targets. */
export function jobFromRequest(
  request: JobFields,
  reference: ModelReference,
  resolved: Pick<NewJob, "target" | "recipe">,
): NewJob {
  const { kind, name, gates = {}, labels = {}, dryRun, deadlineSeconds } = request;
  const model = { ...reference, name: reference.name ?? modelNameFromSource(reference.source) };
  return {
    ...resolved,
    kind,
    name: name ?? `${model.name} for ${resolved.target.name}`,
    model,
    gateLimits: gates,
    dryRun,
    deadlineSeconds,
    labels,
  };
}

/** The file's name, or the start of the upload's hash. */
function modelNameFromSource(source: string): string {
  const name =
    findUploadHash(source)?.slice(0, 12) ??
    new URL(source).pathname.split("/").findLast((part) => part !== "");
  // A repository without a file ends with its revision.
  const own = isFolderSource(source) ? name?.replace(/@.*$/, "") : name;
  const safe = (own ?? "").replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return safe.slice(0, 100) || "model";
}

/** Creates jobs that all wait for a worker, in the given order. */
export async function insertJobs(
  { trx, now, effects }: WriteTransaction,
  { project, batchId }: { readonly project: string; readonly batchId: string | null },
  newJobs: readonly NewJob[],
): Promise<Job[]> {
  const created = newJobs.map((newJob, index) => {
    const id = batchId === null ? (newJob.id ?? newId("job", now)) : batchJobId(batchId, index);
    return { newJob, job: pendingJob(newJob, { id, batchId, now }) };
  });
  const jobRows = created.map(({ newJob, job }) => newJobRow(project, newJob, job));
  const labelRows = created.flatMap(({ job }) => jobLabelRows(project, job));
  for (const chunk of chunkRows(jobRows)) await trx.insertInto("jobs").values(chunk).execute();
  for (const chunk of chunkRows(labelRows)) {
    await trx.insertInto("job_labels").values(chunk).execute();
  }
  await addWaitingJobs(trx, project, created.length);
  for (const { job } of created) effects.waiting.add(job.id);
  return created.map(({ job }) => job);
}

function newJobRow(project: string, newJob: NewJob, job: Job): Insertable<Schema["jobs"]> {
  return {
    id: job.id,
    project,
    kind: job.kind,
    batch_id: job.batchId,
    model_name: job.model.name,
    model_source: job.model.source,
    target: job.target,
    attempt: 0,
    next_log_seq: 1,
    baseline_job_id: job.baseline?.jobId ?? null,
    calibration_data: job.recipe.calibration?.data ?? null,
    evaluation_data: job.recipe.evaluation.data ?? null,
    target_document: JSON.stringify(newJob.target),
    resource: serializeResource(newJob.resource),
    traceparent: newJob.traceparent ?? null,
    ...originColumns(newJob.origin),
    ...jobColumns(job),
  };
}

function jobLabelRows(project: string, { id, labels }: Job): Insertable<Schema["job_labels"]>[] {
  return Object.entries(labels).map(([key, value]) => ({ job_id: id, project, key, value }));
}

function pendingJob(
  newJob: NewJob,
  { id, batchId, now }: { id: string; batchId: string | null; now: Date },
): Job {
  const { kind, name, target, recipe, gateLimits, dryRun, deadlineSeconds } = newJob;
  const { reason, message } = statusCause("queued");
  const at = newJob.createdAt ?? now.toISOString();
  const job: Job = {
    id,
    kind,
    name,
    status: "Pending",
    statusReason: reason,
    statusMessage: message,
    batchId,
    model: { ...newJob.model, bytes: null, actualSha256: null },
    target: target.name,
    recipe,
    gateLimits,
    dryRun,
    labels: { ...newJob.labels },
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    finishedAt: null,
    transitions: [{ status: "Pending", at, reason, message }],
    telemetry: emptyTelemetry,
    artifacts: [],
    baseline: newJob.baseline ?? null,
    gates: [],
    error: null,
  };
  if (deadlineSeconds !== undefined) job.deadlineSeconds = deadlineSeconds;
  if (newJob.createdBy !== undefined) job.createdBy = newJob.createdBy;
  return job;
}

/** Jobs that wait end within minutes, or not at all soon. */
const retrySeconds = 60;

/**
 * Requires room for jobs that a request adds.
 * @throws ServiceError too_many_jobs where more jobs of the project would wait than it may have
 */
export async function requireQueueCapacity(
  { trx, maxWaitingJobs }: WriteTransaction,
  project: string,
  { length: added }: readonly unknown[],
): Promise<void> {
  if (maxWaitingJobs === Infinity) return;
  const waiting = await readWaitingJobs(trx, project);
  if (waiting + added <= maxWaitingJobs) return;
  const waitingJobs = `${waiting} jobs of the project wait, of ${maxWaitingJobs} at most`;
  throw quotaError({
    code: "too_many_jobs",
    message: `${waitingJobs}, and ${added} were asked for`,
    name: "waiting-jobs",
    size: maxWaitingJobs,
    retrySeconds,
  });
}

/**
 * Requires the uploads that new jobs name, which may have expired since the request was checked.
 * @throws ServiceError model_not_found
 */
export async function requireUploads(
  { trx }: WriteTransaction,
  project: string,
  jobs: readonly Pick<NewJob, "model" | "recipe">[],
): Promise<void> {
  const [missing] = await findMissingUploads(trx, project, listNamedUploads(jobs));
  if (missing !== undefined) throw missingUploadError(missing);
}

const hashesPerQuery = 200;

/** Of the hashes those that are not uploads of the project, in their order. */
export async function findMissingUploads(
  db: Store["db"],
  project: string,
  hashes: readonly string[],
): Promise<string[]> {
  const found = new Set<string>();
  for (let start = 0; start < hashes.length; start += hashesPerQuery) {
    const rows = await db
      .selectFrom("project_blobs")
      .select("sha256")
      .where("project", "=", project)
      .where("sha256", "in", hashes.slice(start, start + hashesPerQuery))
      .execute();
    for (const { sha256 } of rows) found.add(sha256);
  }
  return hashes.filter((hash) => !found.has(hash));
}

/** Hashes of the uploads that jobs name as models or data, each once. */
export function listNamedUploads(jobs: readonly Pick<NewJob, "model" | "recipe">[]): string[] {
  const sources = jobs.flatMap(({ model, recipe }) => [model.source, ...listDataSources(recipe)]);
  return [...new Set(sources.flatMap((source) => findUploadHash(source) ?? []))];
}

/**
 * The columns that depend only on the job and change with it.
 * @throws ServiceError payload_too_large for what is larger than all fields at their limits
 */
export function jobColumns(job: Job) {
  const document = JSON.stringify(job);
  const bytes = Buffer.byteLength(document);
  if (bytes > limits.jobDocumentBytes) {
    const message = `Job "${job.id}" would have ${bytes} bytes, of ${limits.jobDocumentBytes} at most`;
    throw new ServiceError("payload_too_large", message);
  }
  return {
    status: job.status,
    finished_at: job.finishedAt,
    gates_failed: hasFailedGate(job.gates) ? 1 : 0,
    document,
    summary: JSON.stringify(summarizeJob(job)),
  };
}
