import type { ReconcileRun, Requeue } from "../../operator/runtime/controller.ts";
import type { Batch } from "../contract/batch.ts";
import type { BatchStatus } from "../contract/status.ts";
import { type BatchObject, batches } from "../kubernetes/custom-resources.ts";
import { isAlreadyExists, isInvalid, isNotFound, KubernetesError } from "../kubernetes/kubernetes-error.ts";
import type { Stored } from "../kubernetes/resources.ts";
import type { HeldBatch, ObservedEvent } from "../records/held.ts";
import { defaultProject } from "../records/project.ts";
import { batchResource } from "./batch-resource.ts";
import { byId, type Mirror } from "./mirror.ts";
import { newBatchOf } from "./record-of-resource.ts";

const soon: Requeue = { requeueAfterMs: 1_000 };

/** Brings a batch's record and its resource together. Its jobs are reconciled on their own, but for those that have no resource. */
export async function reconcileBatch(mirror: Mirror, id: string, run: ReconcileRun): Promise<Requeue | void> {
  const [resource] = mirror.batches.cache.byIndex(byId, id);
  const held = (await mirror.records.held.findBatch(id)) ?? (resource && (await recordBatch(mirror, resource, id)));
  if (held === undefined) return;
  if (resource === undefined || (held.resource.uid ?? resource.metadata.uid) !== resource.metadata.uid) {
    return reconcileUnseen(mirror, held, run);
  }
  if (held.resource.uid === null) await hold(mirror, held, resource);
  await agreeOnCancel(mirror, { held, resource }, run);
  if (isFinal(resource.status?.status))
    await endUnmadeJobs(mirror, held.batch, [{ type: "cancel" }, { type: "stopped" }]);
}

async function recordBatch(mirror: Mirror, resource: Stored<BatchObject>, id: string) {
  await mirror.records.batches.create(defaultProject, newBatchOf(resource, mirror.installation));
  return mirror.records.held.findBatch(id);
}

async function hold({ records }: Mirror, { batch, resource }: HeldBatch, made: Stored<BatchObject>): Promise<void> {
  const { namespace, name } = resource;
  await records.held.holdBatch(batch.id, { namespace, name, uid: made.metadata.uid });
}

async function reconcileUnseen(mirror: Mirror, held: HeldBatch, run: ReconcileRun): Promise<Requeue | void> {
  const { batch, resource } = held;
  if (isFinal(batch.status)) return;
  if (resource.uid === null) {
    if (batch.status === "Cancelling") await endUnmadeJobs(mirror, batch, [{ type: "stopped" }]);
    else await makeResource(mirror, held, run);
    return;
  }
  const live = await mirror.client.get(batches, resource.name).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (live?.metadata.uid === resource.uid) return soon;
  await endUnmadeJobs(mirror, batch, [{ type: "cancel" }, { type: "stopped" }]);
}

async function makeResource(mirror: Mirror, held: HeldBatch, run: ReconcileRun): Promise<void> {
  const { client, resourceTtlSeconds } = mirror;
  const { id } = held.batch;
  const wanted = batchResource(id, held.resource.spec, resourceTtlSeconds);
  try {
    const made = await client.create(batches, wanted);
    await hold(mirror, held, made);
    run.wrote(mirror.batches, made);
  } catch (error) {
    if (isAlreadyExists(error)) await hold(mirror, held, await client.get(batches, id));
    else if (error instanceof KubernetesError && isInvalid(error)) {
      const failure = { code: "resource_invalid" as const, message: error.message.slice(0, 4096) };
      await endUnmadeJobs(mirror, held.batch, [{ type: "failure", error: failure }]);
    } else throw error;
  }
}

/** Cancels the one where the other is cancelled. What follows from `failFast` the operator sees by itself. */
async function agreeOnCancel(
  mirror: Mirror,
  { held: { project, batch }, resource }: { held: HeldBatch; resource: Stored<BatchObject> },
  run: ReconcileRun,
): Promise<void> {
  if (isFinal(batch.status)) return;
  const { metadata, spec } = resource;
  const isAsked = spec.cancel || metadata.deletionTimestamp !== undefined;
  if (isAsked && batch.status !== "Cancelling") await mirror.records.batches.cancel(project, batch.id);
  const hasFailedFast = batch.failFast && batch.counts.Failed > 0;
  if (isAsked || batch.status !== "Cancelling" || hasFailedFast || isFinal(resource.status?.status)) return;
  run.wrote(mirror.batches, await mirror.client.patch(batches, metadata.name, { spec: { cancel: true } }));
}

/** Ends the jobs that have no resource, once none will be made. */
async function endUnmadeJobs({ jobs, records }: Mirror, batch: Batch, events: readonly ObservedEvent[]): Promise<void> {
  for (const { id } of batch.jobs) {
    if (jobs.cache.byIndex(byId, id).length > 0) continue;
    const held = await records.held.findJob(id);
    if (held?.resource.uid === null) await records.held.observe(id, events);
  }
}

function isFinal(status: BatchStatus | undefined): boolean {
  return status === "Completed" || status === "Failed" || status === "Cancelled";
}
