import type { ReconcileRun, Requeue } from "../../operator/runtime/controller.ts";
import { recordFinalizer, resourceLabels } from "../contract/custom-resources.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal, leadsTo } from "../contract/status.ts";
import { type CompressionJobObject, compressionJobs } from "../kubernetes/custom-resources.ts";
import type { Stored } from "../kubernetes/resources.ts";
import type { HeldJob } from "../records/held.ts";
import { defaultProject } from "../records/project.ts";
import { isBatchCancelled } from "./is-batch-cancelled.ts";
import { type JobPods, settlePods } from "./job-pods.ts";
import { byId, type Mirror } from "./mirror.ts";
import { observedEvents } from "./observed-events.ts";
import { isRecorded, projectedStatus, statusOf } from "./projected-status.ts";
import { reconcileUnseen } from "./reconcile-unseen.ts";
import { newJobOf } from "./record-of-resource.ts";
import { writeStatus } from "./write-status.ts";

type Resource = Stored<CompressionJobObject>;

const soon: Requeue = { requeueAfterMs: 1_000 };

/** Brings a job's record and its resource together: what users want goes to the resource, what came of it to both. */
export async function reconcileJob(mirror: Mirror, id: string, run: ReconcileRun): Promise<Requeue | void> {
  const [resource] = mirror.jobs.cache.byIndex(byId, id);
  const held = (await mirror.records.held.findJob(id)) ?? (resource && (await recordJob(mirror, resource, id)));
  if (held === undefined) return resource && soon;
  if (resource === undefined || (held.resource.uid ?? resource.metadata.uid) !== resource.metadata.uid) {
    return reconcileUnseen(mirror, held, run);
  }
  if (held.resource.uid === null) {
    const { namespace, name } = held.resource;
    await mirror.records.held.holdJob(id, { namespace, name, uid: resource.metadata.uid });
  }
  return reconcileSeen(mirror, { held, resource }, run);
}

interface Pair {
  readonly held: HeldJob;
  readonly resource: Resource;
}

async function reconcileSeen(mirror: Mirror, { held, resource }: Pair, run: ReconcileRun): Promise<Requeue | void> {
  const { id } = held.job;
  const asked = await agreeOnCancel(mirror, { held, resource }, run);
  if (asked === undefined) return;
  const pods = await settlePods(mirror, id);
  const job = await adoptStatus(mirror, asked, { resource, pods });
  const isHeldBack = resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
  const ended = isTerminal(statusOf(resource).status);
  if (ended && (!isHeldBack || isRecorded(statusOf(resource)))) {
    mirror.writtenAt.delete(id);
    return;
  }
  const recorded = isHeldBack && isTerminal(job.status) && isAllTold(pods);
  const status = projectedStatus({ job, resource, recorded, now: mirror.now() });
  const requeue = await writeStatus(mirror, { id, resource, status }, run);
  const isWaiting = !pods.captured || (ended && !isTerminal(job.status));
  return requeue ?? (isWaiting ? soon : undefined);
}

/** The record of a resource that somebody else made; undefined where the record of its batch has to come first. */
async function recordJob(mirror: Mirror, resource: Resource, id: string): Promise<HeldJob | undefined> {
  const batch = resource.metadata.labels?.[resourceLabels.batchId];
  const isChild = batch !== undefined && mirror.batches.cache.byIndex(byId, batch).length > 0;
  if (isChild) return undefined;
  await mirror.records.jobs.create(defaultProject, newJobOf(resource, mirror.installation));
  return mirror.records.held.findJob(id);
}

/** Cancels the one where the other is cancelled. Undefined where the resource was written. */
async function agreeOnCancel(mirror: Mirror, { held, resource }: Pair, run: ReconcileRun): Promise<Job | undefined> {
  const { job } = held;
  const { metadata, spec } = resource;
  const isWanted = job.status === "Cancelling" || job.status === "Cancelled";
  const isAsked = spec.cancel || metadata.deletionTimestamp !== undefined;
  if (isAsked && !isWanted && !isTerminal(job.status)) {
    return mirror.records.held.observe(job.id, [{ type: "cancel" }]);
  }
  const isNews = isWanted && !isAsked && !isTerminal(statusOf(resource).status);
  if (!isNews || (await isBatchCancelled(mirror, job))) return job;
  run.wrote(mirror.jobs, await mirror.client.patch(compressionJobs, metadata.name, { spec: { cancel: true } }));
  return undefined;
}

/** What the operator found out goes into the record, once workers cannot tell it better. */
async function adoptStatus(
  { records }: Mirror,
  job: Job,
  { resource, pods }: { resource: Resource; pods: JobPods },
): Promise<Job> {
  const status = statusOf(resource);
  const latest = (await records.held.findJob(job.id))?.job ?? job;
  const isBehind =
    status.status === "Pending"
      ? latest.status === "Pending" &&
        status.statusMessage !== undefined &&
        status.statusMessage !== latest.statusMessage
      : latest.status !== status.status && !leadsTo(latest.kind, status.status, latest.status);
  const mayTellMore = pods.running.length > 0 || !pods.captured;
  if (!isBehind || isTerminal(latest.status) || (isTerminal(status.status) && mayTellMore)) return latest;
  return (await records.held.observe(job.id, observedEvents(status, latest))) ?? latest;
}

/** The pod that ends the job has told all with its result; others of a job that has ended may be in the middle of it. */
function isAllTold({ running, captured }: JobPods): boolean {
  return captured && running.every(({ part }) => part === null || part.step === "assemble");
}
