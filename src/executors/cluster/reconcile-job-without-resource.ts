import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { parseBatchChildName } from "../../contract/id.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { statusCause } from "../../contract/jobs/status-reasons.ts";
import { childCompressionJob } from "../../resources/child-compression-job.ts";
import { compressionJobs } from "../../resources/custom-resources.ts";
import {
  ignoreNotFound,
  isAlreadyExists,
  KubernetesError,
} from "../../kubernetes/kubernetes-error.ts";
import { listJobPods, recordEndedPods } from "./record-ended-pods.ts";
import type { ClusterJob } from "../../records/jobs/cluster-records.ts";
import { createOrGet, jobResource, readUnlessGone } from "./custom-resources.ts";
import { notSubmitted, rejectionEvent } from "./rejection-event.ts";
import { findInNamespace, requeueSoon, type SyncContext } from "./sync-context.ts";
import { isBatchCancelled } from "./reconcile-batch-record.ts";

/**
 * Reconciles a job whose resource is not in the cache: it was not created yet, or it was deleted.
 */
export async function reconcileJobWithoutResource(
  context: SyncContext,
  record: ClusterJob,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { job, resource } = record;
  const { namespace, name } = resource;
  if (resource.uid !== null) context.reportedAt.delete(resource.uid);
  if (isTerminal(job.status)) {
    await recordEndedPods(context, record);
    return;
  }
  if (resource.uid !== null) return reconcileDeletedResource(context, record);
  if (job.batchId !== null)
    await reconcileUncreatedChild(context, { job, namespace, name, batchId: job.batchId });
  else if (job.status === "Cancelling")
    await context.records.cluster.recordEvents(job.id, [{ type: "stopped" }]);
  else await createJobResource(context, record, run);
}

interface UncreatedChild {
  readonly job: Job;
  readonly namespace: string;
  readonly name: string;
  readonly batchId: string;
}

/**
 * The operator creates the resources of a batch's jobs. The resource of a cancelled job is created
 * here, so that the job does not wait for its turn.
 */
async function reconcileUncreatedChild(
  context: SyncContext,
  { job, namespace, name, batchId }: UncreatedChild,
): Promise<void> {
  const { batches, enqueue } = context;
  const client = context.client.inNamespace(namespace);
  const batch = findInNamespace(batches, batchId, namespace);
  enqueue(batchId);
  const number = parseBatchChildName(name)?.index;
  if (batch === undefined || number === undefined || job.status !== "Cancelling") return;
  if (await isBatchCancelled(context, job, namespace)) return;
  const child = childCompressionJob(batch, number);
  try {
    await client.create(compressionJobs, { ...child, spec: { ...child.spec, cancel: true } });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

async function createJobResource(
  context: SyncContext,
  { job, resource }: ClusterJob,
  run: ReconcileRun,
): Promise<void> {
  const { records, jobs } = context;
  const client = context.client.inNamespace(resource.namespace);
  const wanted = jobResource(job, context.resourceTtlSeconds);
  try {
    const created = await createOrGet(client, compressionJobs, wanted);
    await records.cluster.linkJobResource(job.id, { ...resource, uid: created.metadata.uid });
    run.expectWrite(jobs, created);
    if (job.statusReason !== notSubmitted) return;
    await records.cluster.recordEvents(job.id, [{ type: "waiting", ...statusCause("queued") }]);
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    const event = rejectionEvent(error);
    await records.cluster.recordEvents(job.id, [event]);
    if (event.type === "waiting") throw error;
  }
}

/** Ends a job whose resource was deleted, when none of its pods is running. */
async function reconcileDeletedResource(
  context: SyncContext,
  record: ClusterJob,
): Promise<Requeue | void> {
  const { records, workerServiceAccount } = context;
  const { job, resource } = record;
  const client = context.client.inNamespace(resource.namespace);
  const found = ignoreNotFound(client.get(compressionJobs, resource.name));
  const live = await readUnlessGone(client, found);
  if (live?.metadata.uid === resource.uid) return requeueSoon;
  if (job.status !== "Cancelling") await records.cluster.recordEvents(job.id, [{ type: "cancel" }]);
  const { allRecorded, running } = await recordEndedPods(context, record);
  if (!allRecorded || running.length > 0) return requeueSoon;
  const pods = await listJobPods(client, job.id);
  const workers = pods.filter(({ serviceAccount }) => serviceAccount === workerServiceAccount);
  if (workers.some(({ hasEnded }) => !hasEnded)) return requeueSoon;
  await records.cluster.recordEvents(job.id, [{ type: "stopped" }]);
}
