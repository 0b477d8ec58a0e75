import type { Clock } from "../../../src/controller-runtime/clock.ts";
import type { ReconcileRun } from "../../../src/controller-runtime/controller.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";

export interface BatchDependencies {
  readonly client: KubernetesClient;
  readonly batches: WatchedResource<BatchObject>;
  /** Its cache has of each at least metadata, `spec.cancel`, `spec.suspend` and status. */
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Of batches without one of their own; undefined where they stay for good. */
  readonly resourceTtlSeconds?: number | undefined;
}

/** One reconciliation of a batch. */
export interface BatchReconciliation extends BatchDependencies {
  readonly batch: Stored<BatchObject>;
  readonly run: ReconcileRun;
  readonly memory: BatchMemory;
}

/** What is remembered of a batch between its reconciliations. */
export interface BatchMemory {
  readonly uid: string;
  /** When its status was last written. */
  writtenAt: number;
  /** Why its jobs could not be written at the last try. */
  writeError: string | undefined;
  /** Why the API server never takes jobs, by their index, until the status says so. */
  readonly denied: Map<number, string>;
}
