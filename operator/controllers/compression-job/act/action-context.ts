import type { ReconcileRun } from "../../../../src/controller-runtime/controller.ts";
import type { EventRecorder } from "../../../../src/controller-runtime/event-recorder.ts";
import type { WatchedResource } from "../../../../src/controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import type { ObservedWorkerJob } from "../../../../src/resources/observed-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { StartedJobs } from "./started-jobs.ts";

export interface ActionDependencies {
  readonly client: KubernetesClient;
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly workerJobs: WatchedResource<ObservedWorkerJob>;
  readonly events: EventRecorder;
  readonly startedJobs: StartedJobs;
}

/** What the actions of one reconciliation share. */
export interface ActionContext extends ActionDependencies {
  readonly run: ReconcileRun;
  /** As the last write returned it. */
  resource: Stored<CompressionJobObject>;
}

/**
 * Undefined where the next action follows; `stale` where the caches are behind the API server; the
 * state to decide on again where the action observed more.
 */
export type ActionResult = ObservedState | "stale" | undefined;
