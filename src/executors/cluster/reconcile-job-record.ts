import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../contract/custom-resources/resource-labels.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal, leadsTo } from "../../contract/jobs/status.ts";
import {
  type BatchObject,
  batches,
  type CompressionJobObject,
  compressionJobs,
} from "../../resources/custom-resources.ts";
import { ignoreNotFound } from "../../kubernetes/kubernetes-error.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterJob, ObservedEvent } from "../../records/jobs/cluster-records.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import {
  describeRefusedSpec,
  findFirstOfProject,
  isRefusedBatch,
  jobFromResource,
  lacksUpload,
  mayBeRecorded,
  restoreUploads,
} from "./records-from-resources.ts";
import { byId, findInNamespace, requeueSoon, type SyncContext } from "./sync-context.ts";
import { isBatchCancelled } from "./reconcile-batch-record.ts";
import { type JobPods, recordEndedPods } from "./record-ended-pods.ts";
import { eventsFromStatus, findInterruption } from "./events-from-status.ts";
import { hasReport, reportFromJob, resourceStatus, writeReport } from "./job-report.ts";
import { reconcileJobWithoutResource } from "./reconcile-job-without-resource.ts";
import { refuseResources } from "./refuse-resources.ts";

type Resource = Stored<CompressionJobObject>;

/** Reconciles the record of a job with its resource. */
export async function reconcileJobRecord(
  context: SyncContext,
  id: string,
  run: ReconcileRun,
): Promise<Requeue | void> {
  if (await context.records.deletions.wasDeleted(id)) return;
  const claimants = context.jobs.cache.byIndex(byId, id);
  const record =
    (await context.records.cluster.findJob(id)) ?? (await createJobRecord(context, claimants, id));
  await refuseResources(context, { resources: claimants, record }, run);
  if (record === undefined) return mayBeRecorded(context, claimants) ? requeueSoon : undefined;
  const resource = findInNamespace(context.jobs, id, record.resource.namespace);
  if (resource === undefined) return reconcileJobWithoutResource(context, record, run);
  // Also of a resource that was restored or applied again: it is the same job.
  if (record.resource.uid !== resource.metadata.uid) {
    const { namespace, name } = record.resource;
    const { uid } = resource.metadata;
    await context.records.cluster.linkJobResource(id, { namespace, name, uid });
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
  const current = await syncJobCancellation(context, { record, resource }, run);
  if (current === undefined) return;
  const pods = await recordEndedPods(context, record);
  const job = await recordOperatorStatus(context, current, { resource, pods });
  return reportJob(context, { job, resource, pods }, run);
}

/** Reports in a resource what its job's record has, until the job has ended and all is recorded. */
async function reportJob(
  context: SyncContext,
  { job, resource, pods }: { job: Job; resource: Resource; pods: JobPods },
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { uid, finalizers = [] } = resource.metadata;
  const status = resourceStatus(resource);
  const hasEnded = isTerminal(status.status);
  const isAwaited = hasEndedUnstarted(job) || finalizers.includes(recordFinalizer);
  if (hasEnded && (!isAwaited || status.report?.recorded === true)) {
    context.reportedAt.delete(uid);
    return;
  }
  // The report of a record that is behind would take back what the resource says.
  const isAhead = hasEnded && !isTerminal(job.status);
  if (isAhead || findInterruption(status, job) !== undefined) return requeueSoon;
  const allRecorded = isAwaited && isTerminal(job.status) && isFullyRecorded(pods);
  if (hasReport(job, status, allRecorded)) {
    const requeue = await writeReport(context, resource, reportFromJob(job, allRecorded), run);
    if (requeue !== undefined) return requeue;
  }
  return pods.allRecorded ? undefined : requeueSoon;
}

/**
 * Creates the record of a resource that was not created over REST. Undefined where its batch has to
 * be recorded first, no resource is in a namespace with a project, or its spec is refused.
 */
async function createJobRecord(
  context: SyncContext,
  claimants: readonly Resource[],
  id: string,
): Promise<ClusterJob | undefined> {
  const first = await findFirstOfProject(context, claimants);
  if (first === undefined) return undefined;
  const { resource, project } = first;
  const batchId = resource.metadata.labels?.[resourceLabels.batchId];
  // The record of a batch has those of all its jobs: another resource only has its label.
  if (batchId !== undefined && (await isBatchAwaited(context, resource, batchId))) return undefined;
  if (describeRefusedSpec(resource) !== undefined) return undefined;
  const job = jobFromResource(resource, context.targets);
  const createdAt = resource.metadata.creationTimestamp;
  await restoreUploads(context, { project, createdAt, jobs: lacksUpload(resource) ? [] : [job] });
  await context.records.cluster.createJob(project, job);
  return context.records.cluster.findJob(id);
}

/** Whether a batch in the resource's namespace is not recorded yet. One that is refused never is. */
async function isBatchAwaited(
  context: SyncContext,
  resource: Resource,
  batchId: string,
): Promise<boolean> {
  const known = findInNamespace(context.batches, batchId, requireNamespace(resource));
  const batch = known ?? (await findOwningBatch(context, resource));
  if (batch === undefined || isRefusedBatch(batch)) return false;
  return (await context.records.batches.findStatus(batchId)) === undefined;
}

/** The batch that created the resource: the watch of batches may be behind that of jobs. */
async function findOwningBatch(
  { client }: SyncContext,
  { metadata }: Resource,
): Promise<Stored<BatchObject> | undefined> {
  const owners = metadata.ownerReferences ?? [];
  const owner = owners.find(({ kind, controller }) => controller && kind === batches.kind);
  if (owner === undefined) return undefined;
  const found = client.inNamespace(metadata.namespace).get(batches, owner.name);
  const batch = await ignoreNotFound(found);
  return batch?.metadata.uid === owner.uid ? batch : undefined;
}

/**
 * Propagates a cancellation between record and resource. Undefined when the resource was written.
 */
async function syncJobCancellation(
  context: SyncContext,
  { record, resource }: RecordedResource,
  run: ReconcileRun,
): Promise<Job | undefined> {
  const { job } = record;
  const { metadata, spec } = resource;
  const isRecordCancelled = job.status === "Cancelling" || job.status === "Cancelled";
  const { status } = resourceStatus(resource);
  const isCancelAsked = spec.cancel || metadata.deletionTimestamp !== undefined;
  // A job that has ended by itself is not cancelled where its record is behind.
  const isResourceCancelled = isCancelAsked && status !== "Completed" && status !== "Failed";
  if (isResourceCancelled && !isRecordCancelled && !isTerminal(job.status)) {
    return context.records.cluster.recordEvents(job.id, [{ type: "cancel" }]);
  }
  const mustCancelResource = isRecordCancelled && !isResourceCancelled && !isTerminal(status);
  if (!mustCancelResource || (await isBatchCancelled(context, job, record.resource.namespace)))
    return job;
  run.expectWrite(
    context.jobs,
    await context.client
      .inNamespace(metadata.namespace)
      .patch(compressionJobs, metadata.name, { spec: { cancel: true } }),
  );
  return undefined;
}

/** Records the status that the operator reported, once workers cannot report more. */
async function recordOperatorStatus(
  { records, findUpload }: SyncContext,
  job: Job,
  { resource, pods }: { resource: Resource; pods: JobPods },
): Promise<Job> {
  const status = resourceStatus(resource);
  const latest = (await records.cluster.findJob(job.id))?.job ?? job;
  const mayReportMore = pods.running.length > 0 || !pods.allRecorded;
  if (
    !isBehind(latest, status) ||
    isTerminal(latest.status) ||
    (isTerminal(status.status) && mayReportMore) ||
    (findInterruption(status, latest) !== undefined && (await mayWork(records, job.id, pods)))
  ) {
    return latest;
  }
  const events = await Promise.all(
    eventsFromStatus(status, latest).map((event) => markIfMissing(event, findUpload)),
  );
  return (await records.cluster.recordEvents(job.id, events)) ?? latest;
}

async function markIfMissing(
  event: ObservedEvent,
  findUpload: SyncContext["findUpload"],
): Promise<ObservedEvent> {
  if (event.type !== "artifact" || (await findUpload(event.artifact.sha256))) return event;
  return { ...event, artifact: { ...event.artifact, missing: true } };
}

/** Whether a worker of the job has begun whose end is not recorded. */
async function mayWork(
  { attempts }: SyncContext["records"],
  jobId: string,
  { allRecorded }: JobPods,
): Promise<boolean> {
  return !allRecorded || (await attempts.listLivePods(jobId)).length > 0;
}

/** Whether the resource's status is ahead of the record. */
function isBehind(job: Job, resource: CompressionJobStatus): boolean {
  const { status, statusMessage } = resource;
  if (status !== "Pending") {
    return job.status !== status && !leadsTo(job.kind, status, job.status);
  }
  if (findInterruption(resource, job) !== undefined) return true;
  const isNewMessage = statusMessage !== undefined && statusMessage !== job.statusMessage;
  return job.status === "Pending" && isNewMessage;
}

/** Whether the job ended before any work, for which the operator adds the finalizer. */
function hasEndedUnstarted({ status, startedAt }: Job): boolean {
  return isTerminal(status) && startedAt === null;
}

/**
 * The pod that ends the job has reported everything before the result; other pods may still report.
 */
function isFullyRecorded({ running, allRecorded }: JobPods): boolean {
  return allRecorded && running.every(({ part }) => part === null || part.step === "assemble");
}
