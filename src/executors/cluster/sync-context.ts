import { observedWorkerPod } from "./observed-worker-pod.ts";
import { PodLogCollector } from "./pod-log-collector.ts";
import { registerLogMetrics, UnreadLogs } from "./unread-logs.ts";
import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import type { Target } from "../../contract/jobs/target.ts";
import type { StoredUpload } from "../../contract/models/manifest.ts";
import type { Requeue } from "../../controller-runtime/controller.ts";
import type { RuntimeMetrics } from "../../controller-runtime/metrics.ts";
import { type WatchedResource, watchNamespaces } from "../../controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import type { Log } from "../../log/json-log.ts";
import type { Records } from "../../records/open-records.ts";
import {
  batches,
  type BatchObject,
  type CompressionJobObject,
  compressionJobs,
} from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { type ObservedPod, observedResources } from "../../resources/observed-resources.ts";
import { scopeClients, type ServedNamespaces } from "../../resources/served-namespaces.ts";

/** The records, the caches of the cluster, and everything else that reconciling them needs. */
export interface SyncContext {
  readonly records: Records;
  readonly client: KubernetesClient;
  readonly namespaces: ServedNamespaces;
  readonly jobs: WatchedResource<CompressionJobObject>;
  readonly batches: WatchedResource<BatchObject>;
  readonly pods: WatchedResource<ObservedPod>;
  readonly logCollector: PodLogCollector;
  /** A file of the blob store. */
  readonly findUpload: (sha256: string) => Promise<StoredUpload | undefined>;
  /** Those that resources may name. */
  readonly targets: readonly Target[];
  /** `ttlSecondsAfterFinished` of resources that are created for REST requests. */
  readonly resourceTtlSeconds: number;
  /** Service account of the workers' pods. */
  readonly workerServiceAccount: string;
  /** Uids of pods and of the resources that they were created for, as the API server said. */
  readonly ownPods: Map<string, true>;
  /** Time of the last report in a resource, by its uid, milliseconds of `performance.now()`. */
  readonly reportedAt: Map<string, number>;
  /** Reconciles another job or batch. */
  readonly enqueue: (id: string) => void;
  readonly now: () => Date;
  readonly log: Log;
}

/** Index of the caches: the id that a job or batch has in the REST interface. */
export const byId = "id";

/** Index of pods by their job: its id in its namespace. */
export const byJob = "job";

export function podJobKey({ namespace, jobId }: { namespace: string; jobId: string }): string {
  return `${namespace}/${jobId}`;
}

export type SyncOptions = Pick<
  SyncContext,
  | "records"
  | "client"
  | "namespaces"
  | "findUpload"
  | "targets"
  | "resourceTtlSeconds"
  | "workerServiceAccount"
  | "now"
  | "log"
> & { readonly metrics: RuntimeMetrics };

/** Starts the watches of jobs, batches and pods. */
export function createSyncContext(
  options: SyncOptions,
  enqueue: SyncContext["enqueue"],
): SyncContext {
  const { records, client, namespaces, metrics, log } = options;
  const scopes = scopeClients(client, namespaces);
  const unread = new UnreadLogs();
  const countLoss = registerLogMetrics(metrics.registry, unread);
  const jobs = watchNamespaces(scopes, {
    type: compressionJobs,
    indexers: { [byId]: (job) => [resolveJobId(job)] },
    log,
  });
  return {
    ...options,
    enqueue,
    logCollector: new PodLogCollector({
      records,
      client,
      enqueue,
      unread,
      isStored: async (sha256) => (await options.findUpload(sha256)) !== undefined,
      reportedFiles: ({ jobId, namespace }) => reportedFiles(jobs, jobId, namespace),
      countLoss,
      log,
    }),
    ownPods: new Map(),
    reportedAt: new Map(),
    jobs,
    batches: watchNamespaces(scopes, {
      type: batches,
      indexers: { [byId]: (batch) => [resolveBatchId(batch)] },
      log,
    }),
    pods: watchNamespaces(scopes, {
      type: observedResources.pods,
      labelSelector: resourceLabels.jobId,
      indexers: { [byJob]: (pod) => [podJobKey(observedWorkerPod(pod))] },
      log,
    }),
  };
}

function reportedFiles(
  jobs: WatchedResource<CompressionJobObject>,
  jobId: string,
  namespace: string,
): ReadonlySet<string> {
  const { artifacts = [] } = findInNamespace(jobs, jobId, namespace)?.status?.report ?? {};
  return new Set(artifacts.map(({ sha256 }) => sha256));
}

/** The resource of a job or batch: another namespace may have one with a copy of its id. */
export function findInNamespace<T extends KubernetesObject>(
  { cache }: Pick<WatchedResource<T>, "cache">,
  id: string,
  namespace: string,
): Stored<T> | undefined {
  return cache.byIndex(byId, id).find(({ metadata }) => metadata.namespace === namespace);
}

export const requeueSoon: Requeue = { requeueAfterMs: 1_000 };
