import { batchResource, createOrGet, readUnlessGone } from "./custom-resources.ts";
import {
  batchFromResource,
  describeRefusedSpec,
  findFirstOfProject,
  isRefusedBatch,
  jobFromResource,
  lacksUpload,
  restoreUploads,
} from "./records-from-resources.ts";
import { notSubmitted, notSubmittedCause, rejectionEvent } from "./rejection-event.ts";
import { byId, findInNamespace, requeueSoon, type SyncContext } from "./sync-context.ts";
import { jobStateCodes } from "../../contract/custom-resources/batch-resource.ts";
import { batchChildName, batchJobId } from "../../contract/id.ts";
import type { Batch } from "../../contract/batches/batch.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { statusCause } from "../../contract/jobs/status-reasons.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import { ignoreNotFound, KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterBatch, ObservedEvent } from "../../records/jobs/cluster-records.ts";
import { listNamedUploads, type NewJob } from "../../records/jobs/insert-jobs.ts";
import {
  batches,
  type BatchObject,
  type CompressionJobObject,
  compressionJobs,
} from "../../resources/custom-resources.ts";

type BatchMetadata = Stored<BatchObject>["metadata"];

const cancellation: readonly ObservedEvent[] = [{ type: "cancel" }, { type: "stopped" }];

/**
 * Reconciles the record of a batch with its resource. Its jobs are reconciled one by one, except
 * those without a resource.
 */
export async function reconcileBatchRecord(
  context: SyncContext,
  id: string,
  run: ReconcileRun,
): Promise<Requeue | void> {
  if (await context.records.deletions.wasDeleted(id)) return;
  const record =
    (await context.records.cluster.findBatch(id)) ?? (await createBatchRecord(context, id));
  if (record === undefined) return;
  const resource = findInNamespace(context.batches, id, record.resource.namespace);
  if (resource === undefined) return reconcileBatchWithoutResource(context, record, run);
  if (record.resource.uid !== resource.metadata.uid)
    await recordResourceUid(context, record, resource);
  await syncBatchCancellation(context, { record, resource }, run);
  await recordDeniedJobs(context, record, resource);
  await recordNextJob(context, record, resource);
  if (hasEnded(resource)) await recordUncreatedJobs(context, record, cancellation);
}

/** Links the record with its resource, whose jobs wait for their turn. */
async function recordResourceUid(
  context: SyncContext,
  record: ClusterBatch,
  { metadata: { uid } }: Stored<BatchObject>,
): Promise<void> {
  const { cluster } = context.records;
  const { batch, resource } = record;
  const { spec: _spec, ...reference } = resource;
  const waiting = batch.jobs.find(({ status }) => status === "Pending");
  const first = waiting && (await cluster.findJob(waiting.id));
  if (first?.job.statusReason === notSubmitted) {
    await recordUncreatedJobs(context, record, [{ type: "waiting", ...statusCause("queued") }]);
  }
  await cluster.linkBatchResource(batch.id, { ...reference, uid });
}

async function reconcileBatchWithoutResource(
  context: SyncContext,
  record: ClusterBatch,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { batch, resource } = record;
  if (isTerminal(batch.status)) return;
  const client = context.client.inNamespace(resource.namespace);
  if (resource.uid === null) {
    if (batch.status !== "Cancelling") await createBatchResource(context, record, run);
    else await recordUncreatedJobs(context, record, [{ type: "stopped" }]);
    return;
  }
  const found = ignoreNotFound(client.get(batches, resource.name));
  const live = await readUnlessGone(client, found);
  if (live?.metadata.uid === resource.uid) return requeueSoon;
  await recordUncreatedJobs(context, record, cancellation);
}

async function createBatchResource(
  context: SyncContext,
  record: ClusterBatch,
  run: ReconcileRun,
): Promise<void> {
  const { resourceTtlSeconds } = context;
  const client = context.client.inNamespace(record.resource.namespace);
  const wanted = batchResource(record.batch.id, record.resource.spec, resourceTtlSeconds);
  try {
    const created = await createOrGet(client, batches, wanted);
    await recordResourceUid(context, record, created);
    run.expectWrite(context.batches, created);
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    const event = rejectionEvent(error);
    await recordUncreatedJobs(context, record, [event]);
    if (event.type === "waiting") throw error;
  }
}

/**
 * Propagates a cancellation between record and resource. For `failFast` the operator cancels jobs.
 */
async function syncBatchCancellation(
  context: SyncContext,
  { record: { project, batch }, resource }: { record: ClusterBatch; resource: Stored<BatchObject> },
  run: ReconcileRun,
): Promise<void> {
  if (isTerminal(batch.status) || hasEnded(resource)) return;
  const { metadata, spec } = resource;
  const isResourceCancelled = spec.cancel || isDeletedWithJobs(metadata);
  if (isResourceCancelled && batch.status !== "Cancelling") {
    await context.records.batches.cancel(project, batch.id);
  }
  if (isResourceCancelled || batch.status !== "Cancelling") return;
  if (batch.failFast && isFailureKnown(context, batch, resource)) return;
  run.expectWrite(
    context.batches,
    await context.client
      .inNamespace(metadata.namespace)
      .patch(batches, metadata.name, { spec: { cancel: true } }),
  );
}

/** Otherwise its jobs are deleted after it, or go on where `--cascade=orphan` has them stay. */
function isDeletedWithJobs({ deletionTimestamp, finalizers }: BatchMetadata): boolean {
  return deletionTimestamp !== undefined && finalizers?.includes("foregroundDeletion") === true;
}

/** Whether the operator sees a failure: a job that lacks an upload may have no resource yet. */
function isFailureKnown(
  { jobs }: SyncContext,
  batch: Batch,
  resource: Stored<BatchObject>,
): boolean {
  if (resource.status?.marks?.includes(jobStateCodes.failed)) return true;
  const namespace = requireNamespace(resource);
  return batch.jobs.some(({ id, status }) => {
    return status === "Failed" && findInNamespace(jobs, id, namespace) !== undefined;
  });
}

/** Records what becomes of the jobs without a resource. */
async function recordUncreatedJobs(
  { jobs, records }: SyncContext,
  { batch, resource }: ClusterBatch,
  events: readonly ObservedEvent[],
): Promise<void> {
  for (const { id } of batch.jobs) {
    if (findInNamespace(jobs, id, resource.namespace) !== undefined) continue;
    const record = await records.cluster.findJob(id);
    if (record?.resource.uid === null) await records.cluster.recordEvents(id, events);
  }
}

/** Records the failures of jobs that the cluster takes no resource of. */
async function recordDeniedJobs(
  { client, jobs, records }: SyncContext,
  { batch, resource }: ClusterBatch,
  { status }: Stored<BatchObject>,
): Promise<void> {
  for (const [index, { id, status: recorded }] of batch.jobs.entries()) {
    if (status?.marks?.[index] !== jobStateCodes.failed || isTerminal(recorded)) continue;
    if (findInNamespace(jobs, id, resource.namespace) !== undefined) continue;
    const record = await records.cluster.findJob(id);
    if (record?.resource.uid !== null) continue;
    const name = batchChildName(resource.name, index);
    // The watch of jobs may be behind that of batches.
    const found = client.inNamespace(resource.namespace).get(compressionJobs, name);
    if ((await ignoreNotFound(found)) !== undefined) continue;
    const { message = "The cluster has no resource of the job" } =
      status.failures?.find(({ job }) => job === name) ?? {};
    const error = { code: "resource_invalid", message } as const;
    await records.cluster.recordEvents(id, [{ type: "failure", error }]);
  }
}

/** Records why the next job is not created, as far as it is more than its turn. */
async function recordNextJob(
  { records: { cluster } }: SyncContext,
  { batch }: ClusterBatch,
  { status }: Stored<BatchObject>,
): Promise<void> {
  const next = batch.jobs[status?.marks?.indexOf(jobStateCodes.notCreated) ?? -1];
  if (next?.status !== "Pending") return;
  const refusal =
    status?.statusReason === notSubmitted
      ? notSubmittedCause(status.statusMessage ?? "")
      : undefined;
  const { statusReason, statusMessage } = (await cluster.findJob(next.id))?.job ?? {};
  const isSaid =
    refusal === undefined ? statusReason !== notSubmitted : statusMessage === refusal.message;
  if (isSaid) return;
  const cause = refusal ?? statusCause("queued");
  await cluster.recordEvents(next.id, [{ type: "waiting", ...cause }]);
}

function hasEnded({ status }: BatchObject): boolean {
  return status !== undefined && isTerminal(status.status);
}

/**
 * Creates the record of a batch that was not created over REST, with all of its jobs; none of a batch
 * that is refused.
 */
async function createBatchRecord(
  context: SyncContext,
  id: string,
): Promise<ClusterBatch | undefined> {
  const first = await findFirstOfProject(context, context.batches.cache.byIndex(byId, id));
  if (first === undefined) return undefined;
  const { resource, project } = first;
  if (isRefusedBatch(resource)) return undefined;
  const batch = batchFromResource(resource, context.targets);
  const createdAt = resource.metadata.creationTimestamp;
  const namespace = requireNamespace(resource);
  const children = batch.jobs.map((job, i) => {
    return { job, child: findInNamespace(context.jobs, batchJobId(id, i), namespace) };
  });
  const restored = children.filter(({ child }) => child === undefined || !lacksUpload(child));
  await restoreUploads(context, { project, createdAt, jobs: restored.map(({ job }) => job) });
  const jobs = children.map(({ job, child }) => {
    return { ...job, hasBegun: child !== undefined && isBegunChild(context, child, job) };
  });
  await context.records.cluster.createBatch(project, { ...batch, jobs });
  return context.records.cluster.findBatch(id);
}

/** Whether the resource is at work on what the batch says: anybody can create one of that id. */
function isBegunChild(
  { targets }: SyncContext,
  child: Stored<CompressionJobObject>,
  job: NewJob,
): boolean {
  if (describeRefusedSpec(child) !== undefined) return false;
  const begun = jobFromResource(child, targets);
  const uploads = new Set(listNamedUploads([begun]));
  return begun.hasBegun === true && listNamedUploads([job]).every((hash) => uploads.has(hash));
}

/** Whether a job's batch is cancelled as a whole: then the operator cancels the jobs. */
export async function isBatchCancelled(
  { records, batches }: SyncContext,
  { batchId }: Job,
  namespace: string,
): Promise<boolean> {
  if (batchId === null) return false;
  const batch = findInNamespace(batches, batchId, namespace);
  if (batch === undefined) return false;
  const status = await records.batches.findStatus(batchId);
  return batch.spec.cancel || status === "Cancelling";
}
