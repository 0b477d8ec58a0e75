import { systemClock } from "../../controller-runtime/clock.ts";
import {
  type RunningController,
  createSource,
  startController,
} from "../../controller-runtime/controller.ts";
import { type ResourceWatch, watchResource } from "../../controller-runtime/watch-resource.ts";
import { resourceLabels } from "../../contract/resource-labels.ts";
import { jobId as jobIdSchema } from "../../contract/id.ts";
import type { Target } from "../../contract/target.ts";
import type { Log as RuntimeLog } from "../../log/json-log.ts";
import { batches, compressionJobs } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import type { Records } from "../../records/open-records.ts";
import type { Executor } from "../executor.ts";
import type { Log } from "../../log/json-log.ts";
import { recordEndedPods } from "./record-ended-pods.ts";
import { byId, type SyncContext } from "./sync-context.ts";
import { PodLogCollector } from "./pod-log-collector.ts";
import { createPodAuthentication } from "./pod-authentication.ts";
import { reconcileBatchRecord } from "./reconcile-batch-record.ts";
import { reconcileJobRecord } from "./reconcile-job-record.ts";
import { type RecordChangeSource, createRecordChangeSource } from "./record-change-source.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";

export interface ClusterExecutorOptions {
  readonly records: Records;
  /** Closed along with the executor. */
  readonly client: KubernetesClient;
  readonly targets: readonly Target[];
  /** Service account of workers' pods. */
  readonly workerServiceAccount: string;
  /** Seconds after the end at which resources that are made for REST requests go. */
  readonly resourceTtlSeconds: number;
  readonly now: () => Date;
  readonly log: Log;
}

/** Jobs and batches that are looked at beside each other. */
const concurrentReconciliations = 8;

/**
 * Has jobs worked on as custom resources, which the operator runs. Records are the index of what is in the cluster: what
 * others made there is recorded too, and everything is looked at again at the start.
 */
export function createClusterExecutor(options: ClusterExecutorOptions): Executor {
  const { records, client, now, log } = options;
  const changes = createRecordChangeSource(records);
  const context = createSyncContext(options, changes);
  const watches: readonly ResourceWatch[] = [context.jobs, context.batches, context.pods];
  let running: RunningController | undefined;
  const start = async () => {
    await Promise.all(watches.map(({ synced }) => synced));
    changes.enqueue(await records.cluster.listUnfinishedJobs());
    changes.enqueue((await records.attempts.listLivePods()).map(({ jobId }) => jobId));
    running = startController(
      {
        name: "mirror",
        workers: concurrentReconciliations,
        sources: [
          createSource(context.batches, { mapToKeys: (batch) => [resolveBatchId(batch)] }),
          createSource(context.jobs, { mapToKeys: (job) => [resolveJobId(job)] }),
          createSource(context.pods, { mapToKeys: (pod) => [observedWorkerPod(pod).jobId] }),
          changes,
        ],
        reconcile: (id, run) =>
          jobIdSchema.safeParse(id).success
            ? reconcileJobRecord(context, id, run)
            : reconcileBatchRecord(context, id, run),
      },
      { clock: systemClock, log: controllerLog(log) },
    );
  };
  let isClosing = false;
  const started = start().catch((error: unknown) => {
    if (!isClosing) log("error", "The cluster's resources cannot be mirrored", { error });
  });

  return {
    namespace: client.namespace,
    workers: createPodAuthentication({
      client,
      records,
      now,
      pods: context.pods.cache,
      logCollector: context.logCollector,
      recordEndedPods: async (jobId) => void (await recordEndedPods(context, jobId)),
      serviceAccount: options.workerServiceAccount,
    }),
    submit: (jobIds) => changes.enqueue(jobIds),
    readinessProblem() {
      if (running !== undefined) return undefined;
      const problems = watches.flatMap(({ problem }) => problem ?? []);
      return problems[0] ?? "The cluster's resources are being read";
    },
    async close() {
      isClosing = true;
      changes.close();
      await Promise.all(watches.map((watch) => watch.stop()));
      await started;
      const stopped = running?.stop();
      await client.close();
      await stopped;
    },
  };
}

function createSyncContext(
  options: ClusterExecutorOptions,
  changes: RecordChangeSource,
): SyncContext {
  const { records, client, targets, resourceTtlSeconds, now, log } = options;
  const watchLog = controllerLog(log);
  const idIndex = {
    [byId]: (resource: Parameters<typeof resolveJobId>[0]) => [resolveJobId(resource)],
  };
  return {
    records,
    client,
    resourceTtlSeconds,
    enqueue: (id) => changes.enqueue([id]),
    now,
    log,
    namespaceTargets: { namespace: client.namespace, targets },
    logCollector: new PodLogCollector({ records, client, log }),
    statusWrittenAt: new Map(),
    jobs: watchResource({ client, type: compressionJobs, indexers: idIndex, log: watchLog }),
    batches: watchResource({
      client,
      type: batches,
      indexers: { [byId]: (batch) => [resolveBatchId(batch)] },
      log: watchLog,
    }),
    pods: watchResource({
      client,
      type: observedResources.pods,
      labelSelector: resourceLabels.jobId,
      indexers: { [byId]: (pod) => [observedWorkerPod(pod).jobId] },
      log: watchLog,
    }),
  };
}

/** The service's own log has no warnings. */
function controllerLog(log: Log): RuntimeLog {
  return (level, message, fields) => log(level === "warn" ? "error" : level, message, fields);
}
