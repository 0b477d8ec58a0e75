import { type Batch, batchName, type BatchRequest } from "../../contract/batches/batch.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import { batchChildName, newId } from "../../contract/id.ts";
import type { Owner } from "../../contract/people/principal.ts";
import type { NewBatch } from "../../records/jobs/insert-batch.ts";
import type { CreatingRequest } from "../../records/people/idempotency-records.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import type { NewReport } from "../../records/jobs/insert-report.ts";
import { validationError } from "../http/field-errors.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import type { ServerContext } from "../http/server-context.ts";

export interface BatchContents {
  readonly request: Omit<BatchRequest, "report">;
  readonly report: NewReport | undefined;
  /** Absent where the service itself submits jobs again. */
  readonly createdBy?: CreatedBy | undefined;
  /** Of the request's span, where requests are traced. */
  readonly traceparent?: string | undefined;
}

/**
 * Resolves and records a batch, and submits its jobs to the executor.
 * @throws ServiceError for everything in the request that the service cannot do
 */
export async function createBatch(
  context: ServerContext,
  owner: Owner,
  { idempotency, audit, ...contents }: BatchContents & CreatingRequest,
): Promise<Batch> {
  await context.requireSpace();
  const batch = await prepareBatch(context, owner, contents);
  const { batches } = context.records;
  const created = await batches.create(owner.project, batch, { idempotency, audit });
  const jobIds = created.jobs.map(({ id }) => id);
  context.executor.submit(owner.project, jobIds);
  return created;
}

/** @throws ServiceError for everything in the request that the service cannot do */
export async function prepareBatch(
  context: ServerContext,
  owner: Owner,
  { request, report, createdBy, traceparent }: BatchContents,
): Promise<NewBatch> {
  const resolved = await resolveBatch(context, owner, request);
  const jobs = resolved.jobs.map((newJob) => ({ ...newJob, createdBy, traceparent }));
  const named = { ...resolved, jobs, createdBy };
  const batch = withBatchResource(context, named, owner.project, request);
  return report ? { ...batch, report } : batch;
}

async function resolveBatch(
  context: ServerContext,
  owner: Owner,
  { models, targets, ...fields }: BatchContents["request"],
): Promise<NewBatch> {
  const { suite = null, revision = null, kind, failFast, labels = {} } = fields;
  const { recipe, gates, dryRun, deadlineSeconds } = fields;
  const jobs = await resolveJobs(context, {
    owner,
    kind,
    recipe,
    gates,
    dryRun,
    deadlineSeconds,
    labels,
    models: models.map((value, i) => ({ value, pointer: `/models/${i}` })),
    targets: targets.map((value, i) => ({ value, pointer: `/targets/${i}` })),
  });
  if (revision !== null) {
    requireDistinctModelNames(jobs.filter((_, i) => i % targets.length === 0));
  }
  const name = batchName({ ...fields, models, targets });
  return { name, suite, revision, kind, failFast, labels, jobs, origin: owner.origin };
}

/** Baselines are found by the names of models. */
function requireDistinctModelNames(jobs: readonly Pick<NewJob, "model">[]): void {
  const names = jobs.map(({ model }) => model.name);
  const fields = names.flatMap((name, i) => {
    if (names.indexOf(name) === i) return [];
    const rule = "Must differ from the other models' names to be compared over time";
    return [{ pointer: `/models/${i}/name`, message: `${rule}, and "${name}" does not` }];
  });
  if (fields.length > 0) throw validationError(fields);
}

/**
 * In a cluster a batch is a custom resource of its name, which owns the resources of its jobs. The
 * executor creates them later.
 */
function withBatchResource(
  { executor, now }: ServerContext,
  batch: NewBatch,
  project: string,
  spec: BatchContents["request"],
): NewBatch {
  const namespace = executor.projectNamespace?.(project);
  if (namespace === undefined) return batch;
  const at = now();
  const id = newId("batch", at);
  const createdAt = at.toISOString();
  const jobs = batch.jobs.map((job, i) => {
    return { ...job, createdAt, resource: { namespace, name: batchChildName(id, i), uid: null } };
  });
  return { ...batch, id, createdAt, jobs, resource: { namespace, name: id, uid: null, spec } };
}
