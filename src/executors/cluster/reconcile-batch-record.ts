import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { Batch } from "../../contract/batch.ts";
import type { BatchStatus } from "../../contract/status.ts";
import { type BatchObject, batches } from "../../resources/custom-resources.ts";
import {
  isAlreadyExists,
  isInvalid,
  isNotFound,
  KubernetesError,
} from "../../kubernetes/kubernetes-error.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterBatch, ObservedEvent } from "../../records/cluster-records.ts";
import { defaultProject } from "../../records/default-project.ts";
import { batchResource } from "./batch-resource.ts";
import { byId, type SyncContext } from "./sync-context.ts";
import { batchFromResource } from "./records-from-resources.ts";

const requeueSoon: Requeue = { requeueAfterMs: 1_000 };

/** Brings a batch's record and its resource together. Its jobs are reconciled on their own, but for those that have no resource. */
export async function reconcileBatchRecord(
  context: SyncContext,
  id: string,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const [resource] = context.batches.cache.byIndex(byId, id);
  const record =
    (await context.records.cluster.findBatch(id)) ??
    (resource && (await createBatchRecord(context, resource, id)));
  if (record === undefined) return;
  if (
    resource === undefined ||
    (record.resource.uid ?? resource.metadata.uid) !== resource.metadata.uid
  ) {
    return reconcileBatchWithoutResource(context, record, run);
  }
  if (record.resource.uid === null) await recordResourceUid(context, record, resource);
  await syncBatchCancellation(context, { record, resource }, run);
  if (isTerminalBatchStatus(resource.status?.status))
    await endJobsWithoutResource(context, record.batch, [{ type: "cancel" }, { type: "stopped" }]);
}

async function createBatchRecord(context: SyncContext, resource: Stored<BatchObject>, id: string) {
  await context.records.batches.create(
    defaultProject,
    batchFromResource(resource, context.namespaceTargets),
  );
  return context.records.cluster.findBatch(id);
}

async function recordResourceUid(
  { records }: SyncContext,
  { batch, resource }: ClusterBatch,
  made: Stored<BatchObject>,
): Promise<void> {
  const { namespace, name } = resource;
  await records.cluster.linkBatchResource(batch.id, { namespace, name, uid: made.metadata.uid });
}

async function reconcileBatchWithoutResource(
  context: SyncContext,
  record: ClusterBatch,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { batch, resource } = record;
  if (isTerminalBatchStatus(batch.status)) return;
  if (resource.uid === null) {
    if (batch.status === "Cancelling")
      await endJobsWithoutResource(context, batch, [{ type: "stopped" }]);
    else await createBatchResource(context, record, run);
    return;
  }
  const live = await context.client.get(batches, resource.name).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (live?.metadata.uid === resource.uid) return requeueSoon;
  await endJobsWithoutResource(context, batch, [{ type: "cancel" }, { type: "stopped" }]);
}

async function createBatchResource(
  context: SyncContext,
  record: ClusterBatch,
  run: ReconcileRun,
): Promise<void> {
  const { client, resourceTtlSeconds } = context;
  const { id } = record.batch;
  const wanted = batchResource(id, record.resource.spec, resourceTtlSeconds);
  try {
    const made = await client.create(batches, wanted);
    await recordResourceUid(context, record, made);
    run.expectWrite(context.batches, made);
  } catch (error) {
    if (isAlreadyExists(error))
      await recordResourceUid(context, record, await client.get(batches, id));
    else if (error instanceof KubernetesError && isInvalid(error)) {
      const failure = { code: "resource_invalid" as const, message: error.message.slice(0, 4096) };
      await endJobsWithoutResource(context, record.batch, [{ type: "failure", error: failure }]);
    } else throw error;
  }
}

/** Cancels the one where the other is cancelled. What follows from `failFast` the operator sees by itself. */
async function syncBatchCancellation(
  context: SyncContext,
  { record: { project, batch }, resource }: { record: ClusterBatch; resource: Stored<BatchObject> },
  run: ReconcileRun,
): Promise<void> {
  if (isTerminalBatchStatus(batch.status)) return;
  const { metadata, spec } = resource;
  const isResourceCancelled = spec.cancel || metadata.deletionTimestamp !== undefined;
  if (isResourceCancelled && batch.status !== "Cancelling")
    await context.records.batches.cancel(project, batch.id);
  const hasFailedFast = batch.failFast && batch.counts.Failed > 0;
  if (
    isResourceCancelled ||
    batch.status !== "Cancelling" ||
    hasFailedFast ||
    isTerminalBatchStatus(resource.status?.status)
  )
    return;
  run.expectWrite(
    context.batches,
    await context.client.patch(batches, metadata.name, { spec: { cancel: true } }),
  );
}

/** Ends the jobs that have no resource, once none will be made. */
async function endJobsWithoutResource(
  { jobs, records }: SyncContext,
  batch: Batch,
  events: readonly ObservedEvent[],
): Promise<void> {
  for (const { id } of batch.jobs) {
    if (jobs.cache.byIndex(byId, id).length > 0) continue;
    const record = await records.cluster.findJob(id);
    if (record?.resource.uid === null) await records.cluster.recordEvents(id, events);
  }
}

function isTerminalBatchStatus(status: BatchStatus | undefined): boolean {
  return status === "Completed" || status === "Failed" || status === "Cancelled";
}
