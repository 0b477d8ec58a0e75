import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import type { RuntimeMetrics } from "../../controller-runtime/metrics.ts";
import { watchNamespaces } from "../../controller-runtime/watch-namespaces.ts";
import { batches, compressionJobs } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import { scopeClients } from "../../resources/served-namespaces.ts";
import { registerLogMetrics } from "./log-metrics.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";
import { PodLogCollector } from "./pod-log-collector.ts";
import { byId, byJob, podJobKey, type SyncContext } from "./sync-context.ts";
import { UnreadLogs } from "./unread-logs.ts";

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
  return {
    ...options,
    enqueue,
    logCollector: new PodLogCollector({ records, client, enqueue, unread, countLoss, log }),
    ownPods: new Map(),
    statusWrittenAt: new Map(),
    jobs: watchNamespaces(scopes, {
      type: compressionJobs,
      indexers: { [byId]: (job) => [resolveJobId(job)] },
      log,
    }),
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
