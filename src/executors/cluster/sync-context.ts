import type { WatchedResource } from "../../controller-runtime/watch-resource.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import type { ObservedPod } from "../../resources/observed-resources.ts";
import type { Records } from "../../records/open-records.ts";
import type { Log } from "../../log/json-log.ts";
import type { PodLogCollector } from "./pod-log-collector.ts";
import type { NamespaceTargets } from "./records-from-resources.ts";

/** The records on one side, the cluster on the other, and what it takes to keep them alike. */
export interface SyncContext {
  readonly records: Records;
  readonly client: KubernetesClient;
  readonly jobs: WatchedResource<CompressionJobObject>;
  readonly batches: WatchedResource<BatchObject>;
  readonly pods: WatchedResource<ObservedPod>;
  readonly logCollector: PodLogCollector;
  readonly namespaceTargets: NamespaceTargets;
  /** Seconds after the end at which resources that are made for REST requests go. */
  readonly resourceTtlSeconds: number;
  /** When the status of a job's resource was written last, milliseconds of `performance.now()`. */
  readonly statusWrittenAt: Map<string, number>;
  /** Asks for a look at another job or batch. */
  readonly enqueue: (id: string) => void;
  readonly now: () => Date;
  readonly log: Log;
}

/** Index of the caches: the id that a job or batch has in the REST interface. */
export const byId = "id";
