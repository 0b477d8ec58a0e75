import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import { resourceLabels } from "../../contract/resource-labels.ts";
import type { Job } from "../../contract/job.ts";
import { isTerminal } from "../../contract/status.ts";
import { childCompressionJob } from "../../resources/child-compression-job.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import {
  isAlreadyExists,
  isInvalid,
  isNotFound,
  KubernetesError,
} from "../../kubernetes/kubernetes-error.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import { pendingCause } from "../../records/apply-event.ts";
import type { ClusterJob } from "../../records/cluster-records.ts";
import { jobResource } from "./job-resource.ts";
import { isBatchCancelled } from "./is-batch-cancelled.ts";
import { recordEndedPods } from "./record-ended-pods.ts";
import { byId, type SyncContext } from "./sync-context.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";

const notSubmitted = "not_submitted";
const requeueSoon: Requeue = { requeueAfterMs: 1_000 };

/** A job whose resource is not among those that are known: it is still to be made, or it is gone. */
export async function reconcileJobWithoutResource(
  context: SyncContext,
  record: ClusterJob,
  run: ReconcileRun,
): Promise<Requeue | void> {
  const { job, resource } = record;
  context.statusWrittenAt.delete(job.id);
  if (isTerminal(job.status)) {
    await recordEndedPods(context, job.id);
    return;
  }
  if (resource.uid !== null) return reconcileDeletedResource(context, record);
  if (job.batchId !== null)
    await reconcileUncreatedChild(context, { job, name: resource.name, batchId: job.batchId });
  else if (job.status === "Cancelling")
    await context.records.cluster.recordEvents(job.id, [{ type: "stopped" }]);
  else await createJobResource(context, record, run);
}

/** The operator makes the resources of a batch's jobs, in its own time; but one that is cancelled need not wait for that. */
async function reconcileUncreatedChild(
  context: SyncContext,
  { job, name, batchId }: { job: Job; name: string; batchId: string },
): Promise<void> {
  const { client, batches, enqueue } = context;
  const [batch] = batches.cache.byIndex(byId, batchId);
  enqueue(batchId);
  if (batch === undefined || job.status !== "Cancelling" || (await isBatchCancelled(context, job)))
    return;
  const child = childCompressionJob(batch, Number(name.slice(name.lastIndexOf("-") + 1)));
  await client
    .create(compressionJobs, { ...child, spec: { ...child.spec, cancel: true } })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
}

async function createJobResource(
  context: SyncContext,
  { job, resource }: ClusterJob,
  run: ReconcileRun,
): Promise<void> {
  const { client, records, jobs } = context;
  try {
    const made = await createOrGetResource(client, jobResource(job, context.resourceTtlSeconds));
    await records.cluster.linkJobResource(job.id, { ...resource, uid: made.metadata.uid });
    run.expectWrite(jobs, made);
    if (job.statusReason === notSubmitted)
      await records.cluster.recordEvents(job.id, [{ type: "waiting", ...pendingCause }]);
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    if (isInvalid(error)) {
      await records.cluster.recordEvents(job.id, [
        {
          type: "failure",
          error: { code: "resource_invalid", message: error.message.slice(0, 4096) },
        },
      ]);
      return;
    }
    const message = `The cluster does not take the job yet: ${error.message}`.slice(0, 1024);
    await records.cluster.recordEvents(job.id, [
      { type: "waiting", reason: notSubmitted, message },
    ]);
    throw error;
  }
}

/** An earlier try may have arrived although nobody heard of it. */
async function createOrGetResource(
  client: KubernetesClient,
  resource: CompressionJobObject & { metadata: { name: string } },
) {
  try {
    return await client.create(compressionJobs, resource);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(compressionJobs, resource.metadata.name);
  }
}

/** The resource was deleted: the job ends when none of its pods is left. */
async function reconcileDeletedResource(
  context: SyncContext,
  { job, resource }: ClusterJob,
): Promise<Requeue | void> {
  const { client, records } = context;
  const live = await client.get(compressionJobs, resource.name).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (live?.metadata.uid === resource.uid) return requeueSoon;
  if (job.status !== "Cancelling") await records.cluster.recordEvents(job.id, [{ type: "cancel" }]);
  const { allRecorded } = await recordEndedPods(context, job.id);
  if (!allRecorded || (await hasRunningPod(context, job.id))) return requeueSoon;
  await records.cluster.recordEvents(job.id, [{ type: "stopped" }]);
}

async function hasRunningPod({ client }: SyncContext, jobId: string): Promise<boolean> {
  for await (const { items } of client.list(observedResources.pods, {
    labelSelector: `${resourceLabels.jobId}=${jobId}`,
  })) {
    if (items.some((pod) => !observedWorkerPod(pod).hasEnded)) return true;
  }
  return false;
}
