import type { ReconcileRun, Requeue } from "../../operator/runtime/controller.ts";
import { resourceLabels } from "../contract/custom-resources.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import { childOf } from "../kubernetes/child-of-batch.ts";
import { type CompressionJobObject, compressionJobs } from "../kubernetes/custom-resources.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { isAlreadyExists, isInvalid, isNotFound, KubernetesError } from "../kubernetes/kubernetes-error.ts";
import { observedResources } from "../kubernetes/observed-resources.ts";
import { pendingCause } from "../records/apply-event.ts";
import type { HeldJob } from "../records/held.ts";
import { jobResource } from "./job-resource.ts";
import { isBatchCancelled } from "./is-batch-cancelled.ts";
import { settlePods } from "./job-pods.ts";
import { byId, type Mirror } from "./mirror.ts";
import { readPod } from "./worker-pod.ts";

const notSubmitted = "not_submitted";
const soon: Requeue = { requeueAfterMs: 1_000 };

/** A job whose resource is not among those that are known: it is still to be made, or it is gone. */
export async function reconcileUnseen(mirror: Mirror, held: HeldJob, run: ReconcileRun): Promise<Requeue | void> {
  const { job, resource } = held;
  mirror.writtenAt.delete(job.id);
  if (isTerminal(job.status)) {
    await settlePods(mirror, job.id);
    return;
  }
  if (resource.uid !== null) return reconcileGone(mirror, held);
  if (job.batchId !== null) await reconcileUnmade(mirror, { job, name: resource.name, batchId: job.batchId });
  else if (job.status === "Cancelling") await mirror.records.held.observe(job.id, [{ type: "stopped" }]);
  else await makeResource(mirror, held, run);
}

/** The operator makes the resources of a batch's jobs, in its own time; but one that is cancelled need not wait for that. */
async function reconcileUnmade(
  mirror: Mirror,
  { job, name, batchId }: { job: Job; name: string; batchId: string },
): Promise<void> {
  const { client, batches, look } = mirror;
  const [batch] = batches.cache.byIndex(byId, batchId);
  look(batchId);
  if (batch === undefined || job.status !== "Cancelling" || (await isBatchCancelled(mirror, job))) return;
  const child = childOf(batch, Number(name.slice(name.lastIndexOf("-") + 1)));
  await client.create(compressionJobs, { ...child, spec: { ...child.spec, cancel: true } }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

async function makeResource(mirror: Mirror, { job, resource }: HeldJob, run: ReconcileRun): Promise<void> {
  const { client, records, jobs } = mirror;
  try {
    const made = await createOrFind(client, jobResource(job, mirror.resourceTtlSeconds));
    await records.held.holdJob(job.id, { ...resource, uid: made.metadata.uid });
    run.wrote(jobs, made);
    if (job.statusReason === notSubmitted) await records.held.observe(job.id, [{ type: "waiting", ...pendingCause }]);
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    if (isInvalid(error)) {
      await records.held.observe(job.id, [
        { type: "failure", error: { code: "resource_invalid", message: error.message.slice(0, 4096) } },
      ]);
      return;
    }
    const message = `The cluster does not take the job yet: ${error.message}`.slice(0, 1024);
    await records.held.observe(job.id, [{ type: "waiting", reason: notSubmitted, message }]);
    throw error;
  }
}

/** An earlier try may have arrived although nobody heard of it. */
async function createOrFind(client: KubernetesClient, job: CompressionJobObject & { metadata: { name: string } }) {
  try {
    return await client.create(compressionJobs, job);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(compressionJobs, job.metadata.name);
  }
}

/** The resource was deleted: the job ends when none of its pods is left. */
async function reconcileGone(mirror: Mirror, { job, resource }: HeldJob): Promise<Requeue | void> {
  const { client, records } = mirror;
  const live = await client.get(compressionJobs, resource.name).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (live?.metadata.uid === resource.uid) return soon;
  if (job.status !== "Cancelling") await records.held.observe(job.id, [{ type: "cancel" }]);
  const { captured } = await settlePods(mirror, job.id);
  if (!captured || (await hasRunningPod(mirror, job.id))) return soon;
  await records.held.observe(job.id, [{ type: "stopped" }]);
}

async function hasRunningPod({ client }: Mirror, jobId: string): Promise<boolean> {
  for await (const { items } of client.list(observedResources.pods, {
    labelSelector: `${resourceLabels.jobId}=${jobId}`,
  })) {
    if (items.some((pod) => !readPod(pod).ended)) return true;
  }
  return false;
}
