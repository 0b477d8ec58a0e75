import { setTimeout as delay } from "node:timers/promises";
import { deleteInBackground } from "./controllers/compression-job/act/execute-action.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import { isWorkerJob, toWorkerJob } from "./controllers/compression-job/observe/worker-job.ts";
import {
  isWorkerPod,
  mayRun,
  toWorkerPod,
} from "./controllers/compression-job/observe/worker-pod.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../src/contract/custom-resources/resource-labels.ts";
import { systemClock as clock } from "../src/controller-runtime/clock.ts";
import { acquireLeadership, fenceWrites } from "../src/controller-runtime/leadership.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../src/kubernetes/kubernetes-error.ts";
import { findNamespacePhase, listUnlessDeleted } from "../src/kubernetes/namespaces.ts";
import { objectKey } from "../src/kubernetes/object-key.ts";
import { resources, type Stored } from "../src/kubernetes/resources.ts";
import type { Log } from "../src/log/json-log.ts";
import { type CompressionJobObject, compressionJobs } from "../src/resources/custom-resources.ts";
import { observedResources } from "../src/resources/observed-resources.ts";
import { scopeClients, type ServedNamespaces } from "../src/resources/served-namespaces.ts";

/** Labels of the installation's worker Jobs and pods. */
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
 * Prepares the end of an installation, also of one whose Deployment or definitions are gone: stops
 * the operator and its workers, and releases the CompressionJobs. Those that were running start
 * again when another operator is installed. Nothing is left of the election.
 * @throws Error where a worker does not stop, or a CompressionJob cannot be released
 */
export async function uninstall(options: UninstallOptions): Promise<void> {
  const { client, namespaces, settings, deployment, election, log } = options;
  const limit = AbortSignal.timeout(limitMs);
  const scale = { spec: { replicas: 0 } };
  await ignoreNotFound(
    client.patch(resources.deployments, deployment, scale, { subresource: "scale" }),
  );
  const leadership = await acquireLeadership({ ...election, client, clock, log }, limit);
  const leaders = scopeClients(fenceWrites(client, leadership), namespaces);
  log("info", "The operator has ended; workers are stopped");
  await untilWorkersStopped(leaders, settings, limit);
  const released = await releaseCompressionJobs(leaders);
  await leadership.release();
  const { name } = election;
  await ignoreNotFound(client.delete(resources.leases, name, { propagationPolicy: "Background" }));
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
  for await (const { items } of listUnlessDeleted(client, observedResources.jobs, labelled)) {
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
  for await (const { items } of listUnlessDeleted(client, observedResources.pods, labelled)) {
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

/** Ten thousand resources are released within the grace period of the operator's pod. */
const concurrentPatches = 16;

/**
 * Removes the finalizer of all CompressionJobs that the clients list, where no operator will do so
 * any more. Returns their number.
 * @throws the first error, once all the others are released
 */
async function releaseCompressionJobs(clients: readonly KubernetesClient[]): Promise<number> {
  const kept = listKeptJobs(clients);
  const errors: unknown[] = [];
  let released = 0;
  const releaseNext = async () => {
    for await (const { client, job } of kept) {
      try {
        if (await releaseCompressionJob(client, job)) released++;
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrentPatches }, releaseNext));
  if (errors.length > 0) throw errors[0];
  return released;
}

async function* listKeptJobs(clients: readonly KubernetesClient[]) {
  for (const scope of clients) {
    for await (const { items } of listUnlessDeleted(scope, compressionJobs)) {
      for (const job of items) {
        const client = scope.inNamespace(job.metadata.namespace);
        if (job.metadata.finalizers?.includes(recordFinalizer)) yield { client, job };
      }
    }
  }
}

async function releaseCompressionJob(
  client: KubernetesClient,
  { metadata: { name, finalizers = [] } }: Stored<CompressionJobObject>,
): Promise<boolean> {
  const others = finalizers.filter((finalizer) => finalizer !== recordFinalizer);
  const patch = { metadata: { finalizers: others } };
  return (await ignoreNotFound(client.patch(compressionJobs, name, patch))) !== undefined;
}

/**
 * Releases all CompressionJobs if the operator's namespace is being deleted, which ends this one.
 * Kubernetes deletes the pods of a namespace before anything else, and waits for their end.
 */
export async function releaseFromDeletedNamespace(
  client: KubernetesClient,
  scopes: readonly KubernetesClient[],
  log: Log,
): Promise<void> {
  try {
    if ((await findNamespacePhase(client)) === "active") return;
    const released = await releaseCompressionJobs(scopes);
    log("info", "The namespace is being deleted: CompressionJobs are released", { released });
  } catch (error) {
    log("error", "Cannot release the CompressionJobs of a namespace that may be deleted", {
      error,
    });
  }
}
