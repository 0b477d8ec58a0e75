import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import { recordFinalizer, resourceLabels } from "../../contract/resource-labels.ts";
import type { Job } from "../../contract/job.ts";
import { isTerminal, leadsTo } from "../../contract/status.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterJob } from "../../records/cluster-records.ts";
import { defaultProject } from "../../records/default-project.ts";
import { isBatchCancelled } from "./is-batch-cancelled.ts";
import { type JobPods, recordEndedPods } from "./record-ended-pods.ts";
import { byId, type SyncContext } from "./sync-context.ts";
import { eventsFromStatus } from "./events-from-status.ts";
import { hasRecordedCondition, desiredStatus, resourceStatus } from "./desired-status.ts";
import { reconcileJobWithoutResource } from "./reconcile-job-without-resource.ts";
import { jobFromResource } from "./records-from-resources.ts";
import { patchResourceStatus } from "./patch-resource-status.ts";

type Resource = Stored<CompressionJobObject>;

const requeueSoon: Requeue = { requeueAfterMs: 1_000 };

/** Brings a job's record and its resource together: what users want goes to the resource, what came of it to both. */
export async function reconcileJobRecord(
  context: SyncContext,
  id: string,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const [resource] = context.jobs.cache.byIndex(byId, id);
  const record =
    (await context.records.cluster.findJob(id)) ??
    (resource && (await createJobRecord(context, resource, id)));
  if (record === undefined) return resource && requeueSoon;
  if (
    resource === undefined ||
    (record.resource.uid ?? resource.metadata.uid) !== resource.metadata.uid
  ) {
    return reconcileJobWithoutResource(context, record, run);
  }
  if (record.resource.uid === null) {
    const { namespace, name } = record.resource;
    await context.records.cluster.linkJobResource(id, {
      namespace,
      name,
      uid: resource.metadata.uid,
    });
  }
  return reconcileJobWithResource(context, { record, resource }, run);
}

interface RecordedResource {
  readonly record: ClusterJob;
  readonly resource: Resource;
}

async function reconcileJobWithResource(
  context: SyncContext,
  { record, resource }: RecordedResource,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { id } = record.job;
  const current = await syncJobCancellation(context, { record, resource }, run);
  if (current === undefined) return;
  const pods = await recordEndedPods(context, id);
  const job = await recordOperatorStatus(context, current, { resource, pods });
  const hasRecordFinalizer = resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
  const ended = isTerminal(resourceStatus(resource).status);
  if (ended && (!hasRecordFinalizer || hasRecordedCondition(resourceStatus(resource)))) {
    context.statusWrittenAt.delete(id);
    return;
  }
  const allRecorded = hasRecordFinalizer && isTerminal(job.status) && isFullyRecorded(pods);
  const status = desiredStatus({ job, resource, allRecorded, now: context.now() });
  const requeue = await patchResourceStatus(context, { id, resource, status }, run);
  const isWaiting = !pods.allRecorded || (ended && !isTerminal(job.status));
  return requeue ?? (isWaiting ? requeueSoon : undefined);
}

/** The record of a resource that somebody else made; undefined where the record of its batch has to come first. */
async function createJobRecord(
  context: SyncContext,
  resource: Resource,
  id: string,
): Promise<ClusterJob | undefined> {
  const batch = resource.metadata.labels?.[resourceLabels.batchId];
  const isChild = batch !== undefined && context.batches.cache.byIndex(byId, batch).length > 0;
  if (isChild) return undefined;
  await context.records.jobs.create(
    defaultProject,
    jobFromResource(resource, context.namespaceTargets),
  );
  return context.records.cluster.findJob(id);
}

/** Cancels the one where the other is cancelled. Undefined where the resource was written. */
async function syncJobCancellation(
  context: SyncContext,
  { record, resource }: RecordedResource,
  run: ReconcileRun,
): Promise<Job | undefined> {
  const { job } = record;
  const { metadata, spec } = resource;
  const isRecordCancelled = job.status === "Cancelling" || job.status === "Cancelled";
  const isResourceCancelled = spec.cancel || metadata.deletionTimestamp !== undefined;
  if (isResourceCancelled && !isRecordCancelled && !isTerminal(job.status)) {
    return context.records.cluster.recordEvents(job.id, [{ type: "cancel" }]);
  }
  const mustCancelResource =
    isRecordCancelled && !isResourceCancelled && !isTerminal(resourceStatus(resource).status);
  if (!mustCancelResource || (await isBatchCancelled(context, job))) return job;
  run.expectWrite(
    context.jobs,
    await context.client.patch(compressionJobs, metadata.name, { spec: { cancel: true } }),
  );
  return undefined;
}

/** What the operator found out goes into the record, once workers cannot tell it better. */
async function recordOperatorStatus(
  { records }: SyncContext,
  job: Job,
  { resource, pods }: { resource: Resource; pods: JobPods },
): Promise<Job> {
  const status = resourceStatus(resource);
  const latest = (await records.cluster.findJob(job.id))?.job ?? job;
  const isBehind =
    status.status === "Pending"
      ? latest.status === "Pending" &&
        status.statusMessage !== undefined &&
        status.statusMessage !== latest.statusMessage
      : latest.status !== status.status && !leadsTo(latest.kind, status.status, latest.status);
  const mayReportMore = pods.running.length > 0 || !pods.allRecorded;
  if (!isBehind || isTerminal(latest.status) || (isTerminal(status.status) && mayReportMore))
    return latest;
  return (await records.cluster.recordEvents(job.id, eventsFromStatus(status, latest))) ?? latest;
}

/** The pod that ends the job has told all with its result; others of a job that has ended may be in the middle of it. */
function isFullyRecorded({ running, allRecorded }: JobPods): boolean {
  return allRecorded && running.every(({ part }) => part === null || part.step === "assemble");
}
