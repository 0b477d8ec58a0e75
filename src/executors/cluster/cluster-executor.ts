import { jobId as jobIdSchema } from "../../contract/id.ts";
import { recordFinalizer } from "../../contract/resource-labels.ts";
import { systemClock } from "../../controller-runtime/clock.ts";
import { type Controller, createSource } from "../../controller-runtime/controller.ts";
import {
  type RunningController,
  startController,
} from "../../controller-runtime/start-controller.ts";
import type { RuntimeMetrics } from "../../controller-runtime/metrics.ts";
import type { ResourceWatch } from "../../controller-runtime/watch-resource.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import type { Executor } from "../executor.ts";
import type { WorkerAuthentication } from "../worker-authentication.ts";
import { createSyncContext, type SyncOptions } from "./create-sync-context.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";
import { createPodAuthentication } from "./pod-authentication.ts";
import { reconcileBatchRecord } from "./reconcile-batch-record.ts";
import { reconcileJobRecord } from "./reconcile-job-record.ts";
import { createRecordChangeSource, type RecordChangeSource } from "./record-change-source.ts";
import { recordEndedPods } from "./record-ended-pods.ts";
import { hasRecordedCondition, resourceStatus } from "./desired-status.ts";
import { byId, type SyncContext } from "./sync-context.ts";

export interface ClusterExecutorOptions extends SyncOptions {
  /** Service account of the workers' pods. */
  readonly workerServiceAccount: string;
  readonly metrics: RuntimeMetrics;
}

/** Jobs and batches that are reconciled at the same time. */
const concurrentReconciliations = 8;

/** A pod that continues the work of others waits so long for their logs, which then come first. */
const readWaitMs = 10_000;

/**
 * Runs jobs as custom resources, which the operator works on. It closes the client. The records are
 * kept in step with the resources of the cluster, including those that others created, and all of
 * them are reconciled at the start.
 */
export function createClusterExecutor(options: ClusterExecutorOptions): Executor {
  return new ClusterExecutor(options);
}

class ClusterExecutor implements Executor {
  readonly namespace: string;
  readonly workers: WorkerAuthentication;
  readonly #context: SyncContext;
  readonly #changes: RecordChangeSource;
  readonly #watches: readonly ResourceWatch[];
  readonly #started: Promise<void>;
  #running: RunningController | undefined;
  #isClosing = false;

  constructor(options: ClusterExecutorOptions) {
    const { records, client, log, metrics } = options;
    const changes = createRecordChangeSource(records);
    const context = createSyncContext(options, (id) => changes.enqueue([id]));
    this.namespace = client.namespace;
    this.workers = authenticateWorkers(context, options.workerServiceAccount);
    this.#changes = changes;
    this.#context = context;
    this.#watches = [context.jobs, context.batches, context.pods];
    metrics.trackCaches(this.#watches);
    this.#started = this.#start(options).catch((error: unknown) => {
      if (this.#isClosing) return;
      log("error", "The cluster's resources cannot be reconciled with the records", { error });
    });
  }

  submit(_project: string, jobIds: readonly string[]): void {
    this.#changes.enqueue(jobIds);
  }

  /** Unknown: Kubernetes chooses which pod starts next. */
  queuePosition(): undefined {}

  awaitsRecord(jobId: string): boolean {
    const [resource] = this.#context.jobs.cache.byIndex(byId, jobId);
    if (resource === undefined) return false;
    const isKept = resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
    return isKept && !hasRecordedCondition(resourceStatus(resource));
  }

  readinessProblem(): string | undefined {
    if (this.#running !== undefined) return undefined;
    const [problem] = this.#watches.flatMap((watch) => watch.problem ?? []);
    return problem ?? "The cluster's resources are being read";
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#changes.close();
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#started;
    const stopped = this.#running?.stop();
    await this.#context.client.close();
    await stopped;
  }

  async #start({ records, metrics, log }: ClusterExecutorOptions): Promise<void> {
    await Promise.all(this.#watches.map(({ synced }) => synced));
    this.#changes.enqueue(await records.cluster.listUnfinishedJobs());
    this.#changes.enqueue((await records.attempts.listLivePods()).map(({ jobId }) => jobId));
    const controller = recordController(this.#context, this.#changes);
    const observer = metrics.createControllerObserver(controller.name);
    this.#running = startController(controller, { clock: systemClock, log, observer });
  }
}

function authenticateWorkers(context: SyncContext, serviceAccount: string): WorkerAuthentication {
  const { client, records, logCollector, now } = context;
  return createPodAuthentication({
    client,
    records,
    now,
    pods: context.pods.cache,
    logCollector,
    recordEndedPods: async (jobId) => {
      await recordEndedPods(context, jobId);
      await logCollector.finishReads(jobId, readWaitMs);
    },
    serviceAccount,
  });
}

function recordController(context: SyncContext, changes: RecordChangeSource): Controller {
  return {
    name: "records",
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
  };
}
