import { resourceLabels } from "../../contract/resource-labels.ts";
import type { Target } from "../../contract/target.ts";
import { watchResource } from "../../controller-runtime/watch-resource.ts";
import { batches, compressionJobs } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";
import { PodLogCollector } from "./pod-log-collector.ts";
import { byId, type SyncContext } from "./sync-context.ts";

export interface SyncOptions extends Pick<
  SyncContext,
  "records" | "client" | "resourceTtlSeconds" | "workerServiceAccount" | "now" | "log"
> {
  readonly targets: readonly Target[];
}

/** Starts the watches of jobs, batches and pods. */
export function createSyncContext(
  { targets, ...options }: SyncOptions,
  enqueue: SyncContext["enqueue"],
): SyncContext {
  const { records, client, log } = options;
  return {
    ...options,
    enqueue,
    namespaceTargets: { namespace: client.namespace, targets },
    logCollector: new PodLogCollector({ records, client, enqueue, log }),
    statusWrittenAt: new Map(),
    jobs: watchResource({
      client,
      type: compressionJobs,
      indexers: { [byId]: (job) => [resolveJobId(job)] },
      log,
    }),
    batches: watchResource({
      client,
      type: batches,
      indexers: { [byId]: (batch) => [resolveBatchId(batch)] },
      log,
    }),
    pods: watchResource({
      client,
      type: observedResources.pods,
      labelSelector: resourceLabels.jobId,
      indexers: { [byId]: (pod) => [observedWorkerPod(pod).jobId] },
      log,
    }),
  };
}
