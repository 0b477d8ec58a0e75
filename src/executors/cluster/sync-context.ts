import type { WatchedResource } from "../../controller-runtime/watch-resource.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import type { ObservedPod } from "../../resources/observed-resources.ts";
import type { Records } from "../../records/open-records.ts";
import type { Log } from "../../log/json-log.ts";
import type { StoredUpload } from "../../contract/models/manifest.ts";
import type { Target } from "../../contract/jobs/target.ts";
import type { ServedNamespaces } from "../../resources/served-namespaces.ts";
import type { PodLogCollector } from "./pod-log-collector.ts";

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
  /** Time of the last write of a job's status, milliseconds of `performance.now()`. */
  readonly statusWrittenAt: Map<string, number>;
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
