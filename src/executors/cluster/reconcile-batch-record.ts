import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import { textLimits } from "../../contract/limits.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { truncate } from "../../contract/text/bounded-text.ts";
import { type BatchObject, batches } from "../../resources/custom-resources.ts";
import { ignoreNotFound, isInvalid, KubernetesError } from "../../kubernetes/kubernetes-error.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterBatch, ObservedEvent } from "../../records/jobs/cluster-records.ts";
import { findInNamespace } from "./find-in-namespace.ts";
import { createBatchRecord } from "./create-batch-record.ts";
import { batchResource } from "./batch-resource.ts";
import { createOrGet } from "./create-or-get.ts";
import { readUnlessGone } from "./read-unless-gone.ts";
import { requeueSoon } from "./requeue-soon.ts";
import type { SyncContext } from "./sync-context.ts";

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
  if (hasEnded(resource)) await endJobsWithoutResource(context, record, cancellation);
}

async function recordResourceUid(
  { records }: SyncContext,
  { batch, resource }: ClusterBatch,
  { metadata: { uid } }: Stored<BatchObject>,
): Promise<void> {
  const { spec: _spec, ...reference } = resource;
  await records.cluster.linkBatchResource(batch.id, { ...reference, uid });
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
    else await endJobsWithoutResource(context, record, [{ type: "stopped" }]);
    return;
  }
  const found = ignoreNotFound(client.get(batches, resource.name));
  const live = await readUnlessGone(client, found);
  if (live?.metadata.uid === resource.uid) return requeueSoon;
  await endJobsWithoutResource(context, record, cancellation);
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
    if (!(error instanceof KubernetesError && isInvalid(error))) throw error;
    const message = truncate(error.message, textLimits.errorMessage);
    const failure = { code: "resource_invalid", message } as const;
    await endJobsWithoutResource(context, record, [{ type: "failure", error: failure }]);
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
  if (isTerminal(batch.status)) return;
  const { metadata, spec } = resource;
  const isResourceCancelled = spec.cancel || metadata.deletionTimestamp !== undefined;
  if (isResourceCancelled && batch.status !== "Cancelling") {
    await context.records.batches.cancel(project, batch.id);
  }
  if (isResourceCancelled || batch.status !== "Cancelling" || hasEnded(resource)) return;
  const hasFailedFast = batch.failFast && batch.counts.Failed > 0;
  if (hasFailedFast) return;
  run.expectWrite(
    context.batches,
    await context.client
      .inNamespace(metadata.namespace)
      .patch(batches, metadata.name, { spec: { cancel: true } }),
  );
}

/** Ends the jobs without a resource, when none will be created. */
async function endJobsWithoutResource(
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

function hasEnded({ status }: BatchObject): boolean {
  return status !== undefined && isTerminal(status.status);
}
