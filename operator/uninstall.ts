import { setTimeout as delay } from "node:timers/promises";
import { resourceLabels } from "../src/contract/custom-resources/resource-labels.ts";
import { acquireLeadership } from "../src/controller-runtime/acquire-leadership.ts";
import { systemClock as clock } from "../src/controller-runtime/clock.ts";
import { fenceWrites } from "../src/controller-runtime/fence-writes.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { objectKey } from "../src/kubernetes/object-key.ts";
import { resources } from "../src/kubernetes/resources.ts";
import type { Log } from "../src/log/json-log.ts";
import { observedResources } from "../src/resources/observed-resources.ts";
import { scopeClients, type ServedNamespaces } from "../src/resources/served-namespaces.ts";
import { deleteInBackground } from "./controllers/compression-job/act/delete-in-background.ts";
import { isWorkerJob } from "./controllers/compression-job/observe/is-worker-job.ts";
import { isWorkerPod } from "./controllers/compression-job/observe/is-worker-pod.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import { toWorkerJob } from "./controllers/compression-job/observe/worker-job.ts";
import { mayRun, toWorkerPod } from "./controllers/compression-job/observe/worker-pod.ts";
import { releaseCompressionJobs } from "./release-compression-jobs.ts";

/** By which worker Jobs and pods of the installation are known. */
type WorkerAccount = Pick<JobSettings, "serviceAccount">;

interface UninstallOptions {
  readonly client: KubernetesClient;
  readonly namespaces: ServedNamespaces;
  readonly settings: WorkerAccount;
  /** The operator's Deployment. */
  readonly deployment: string;
  /** As operators elect a leader. */
  readonly election: { readonly name: string; readonly identity: string };
  readonly log: Log;
}

const pollMs = 1_000;
/** Less than the hook's deadline, so that the reason is logged. */
const limitMs = 120_000;

/**
 * Prepares the end of an installation: stops the operator and its workers, and releases the
 * CompressionJobs. Those that were running start again when another operator is installed.
 * @throws Error where a worker does not stop
 */
export async function uninstall(options: UninstallOptions): Promise<void> {
  const { client, namespaces, settings, deployment, election, log } = options;
  const limit = AbortSignal.timeout(limitMs);
  const scale = { spec: { replicas: 0 } };
  await client.patch(resources.deployments, deployment, scale, { subresource: "scale" });
  const leadership = await acquireLeadership({ ...election, client, clock, log }, limit);
  const leaders = scopeClients(fenceWrites(client, leadership), namespaces);
  log("info", "The operator has ended; workers are stopped");
  await untilWorkersStopped(leaders, settings, limit);
  const released = await releaseCompressionJobs(leaders);
  await leadership.release();
  log("info", "No worker runs any more, and CompressionJobs are released", { released });
}

async function untilWorkersStopped(
  clients: readonly KubernetesClient[],
  settings: WorkerAccount,
  limit: AbortSignal,
): Promise<void> {
  for (;;) {
    const stopped = clients.map((client) => stopAllWorkers(client, settings));
    const running = (await Promise.all(stopped)).flat();
    if (running.length === 0) return;
    if (limit.aborted) throw new Error(`These workers do not stop: ${running.join(", ")}`);
    await delay(pollMs);
  }
}

/** Deletes worker Jobs that have not ended and pods that may run. Returns the names of the pods. */
async function stopAllWorkers(
  client: KubernetesClient,
  settings: WorkerAccount,
): Promise<string[]> {
  await stopWorkerJobs(client, settings);
  return stopWorkerPods(client, settings);
}

const labelled = { labelSelector: resourceLabels.jobId };

async function stopWorkerJobs(client: KubernetesClient, settings: WorkerAccount): Promise<void> {
  for await (const { items } of client.list(observedResources.jobs, labelled)) {
    for (const item of items) {
      const job = toWorkerJob(item);
      if (!isWorkerJob(job, settings) || job.end !== undefined || job.deleting) continue;
      await deleteInBackground(client.inNamespace(item.metadata.namespace), resources.jobs, job);
    }
  }
}

async function stopWorkerPods(
  client: KubernetesClient,
  settings: WorkerAccount,
): Promise<string[]> {
  const names: string[] = [];
  for await (const { items } of client.list(observedResources.pods, labelled)) {
    for (const item of items) {
      if (!isWorkerPod(item, settings)) continue;
      const pod = toWorkerPod(item, 0);
      if (!mayRun(pod)) continue;
      names.push(objectKey(item.metadata));
      if (pod.deletionDeadline !== undefined) continue;
      await deleteInBackground(client.inNamespace(item.metadata.namespace), resources.pods, pod);
    }
  }
  return names;
}
