import { setBounded } from "../../limits/bounded-map.ts";
import { readUnlessGone } from "./custom-resources.ts";
import { observedWorkerPod, type ObservedWorkerPod } from "./observed-worker-pod.ts";
import { isCreatedFor, maxCachedEntries } from "./pod-authentication.ts";
import { byJob, podJobKey, type SyncContext } from "./sync-context.ts";
import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import type { ClusterJob } from "../../records/jobs/cluster-records.ts";
import { observedResources } from "../../resources/observed-resources.ts";

export interface JobPods {
  /** Pods whose workers may report more. */
  readonly running: readonly ObservedWorkerPod[];
  /** Whether everything that the other pods reported is recorded. */
  readonly allRecorded: boolean;
}

/** Records the rest of the output of a job's pods that have ended, and the end of deleted pods. */
export async function recordEndedPods(context: SyncContext, job: ClusterJob): Promise<JobPods> {
  const { logCollector, records } = context;
  const jobId = job.job.id;
  const observed = await listWorkers(context, job);
  for (const pod of observed) logCollector.noteDisruption(pod);
  const running = observed.filter(({ hasEnded }) => !hasEnded);
  let allRecorded = true;
  for (const pod of observed) {
    if (pod.hasEnded && !(await logCollector.recordEndedPod(pod))) allRecorded = false;
  }
  const present = new Set(observed.map(({ uid }) => uid));
  const live = await records.attempts.listLivePods(jobId);
  const gone = live.filter(({ podUid }) => !present.has(podUid));
  const missing = gone.filter(({ podUid }) => !logCollector.isReading(podUid));
  if (missing.length < gone.length) allRecorded = false;
  if (missing.length === 0) return { running, allRecorded };
  const client = context.client.inNamespace(job.resource.namespace);
  // Another replica may have seen a pod begin that the cache does not have yet.
  const existing = new Set((await listJobPods(client, jobId)).map(({ uid }) => uid));
  for (const pod of missing) {
    if (existing.has(pod.podUid)) allRecorded = false;
    else await logCollector.endDeletedPod(pod);
  }
  return { running, allRecorded };
}

/** The job's pods without those that others made with its label: their logs could say anything. */
async function listWorkers(
  context: SyncContext,
  { job, resource }: ClusterJob,
): Promise<ObservedWorkerPod[]> {
  const key = podJobKey({ namespace: resource.namespace, jobId: job.id });
  const workers: ObservedWorkerPod[] = [];
  for (const pod of context.pods.cache.byIndex(byJob, key).map(observedWorkerPod)) {
    if (await isOwnWorker(context, pod)) workers.push(pod);
  }
  return workers;
}

async function isOwnWorker(
  { records, client, ownPods, workerServiceAccount }: SyncContext,
  pod: ObservedWorkerPod,
): Promise<boolean> {
  if (pod.serviceAccount !== workerServiceAccount) return false;
  if ((await records.attempts.findPodAttempt(pod.jobId, pod.uid)) !== undefined) return true;
  const uid = (await records.cluster.findJob(pod.jobId))?.resource.uid ?? null;
  if (uid === null) return false;
  const key = `${pod.uid} ${uid}`;
  if (ownPods.has(key)) return true;
  const isOwn = await isCreatedFor(client, pod, uid);
  if (isOwn) setBounded(ownPods, key, true, maxCachedEntries);
  return isOwn;
}

/** The pods of a job as the API server has them now: a cache may be behind. */
export async function listJobPods(
  client: KubernetesClient,
  jobId: string,
): Promise<ObservedWorkerPod[]> {
  return (await readUnlessGone(client, listPods(client, jobId))) ?? [];
}

async function listPods(client: KubernetesClient, jobId: string): Promise<ObservedWorkerPod[]> {
  const labelSelector = `${resourceLabels.jobId}=${jobId}`;
  const pods: ObservedWorkerPod[] = [];
  for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
    pods.push(...items.map(observedWorkerPod));
  }
  return pods;
}
