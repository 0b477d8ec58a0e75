import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { jobId as jobIdSchema } from "../../contract/id.ts";
import { recordFinalizer } from "../../contract/custom-resources/resource-labels.ts";
import { systemClock } from "../../controller-runtime/clock.ts";
import { type Controller, createSource, type Source } from "../../controller-runtime/controller.ts";
import {
  type ControllerObserver,
  type RunningController,
  startController,
} from "../../controller-runtime/start-controller.ts";
import type { ResourceWatch } from "../../controller-runtime/watch-resource.ts";
import { backOffMs } from "../../limits/retry.ts";
import type { Log } from "../../log/json-log.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { projectNamespace } from "../../resources/served-namespaces.ts";
import type { CallerAuthentication, WorkerAuthentication } from "../../auth/authenticate.ts";
import { ServiceAccountCallers } from "./service-account-callers.ts";
import type { Executor } from "../executor.ts";
import { byId, createSyncContext, type SyncContext, type SyncOptions } from "./sync-context.ts";
import { observedWorkerPod } from "./observed-worker-pod.ts";
import { PodAuthentication } from "./pod-authentication.ts";
import { reconcileBatchRecord } from "./reconcile-batch-record.ts";
import { reconcileJobRecord } from "./reconcile-job-record.ts";
import { recordEndedPods } from "./record-ended-pods.ts";
import type { Records } from "../../records/open-records.ts";

export interface ClusterExecutorOptions extends SyncOptions {
  /** Whether programs of the cluster call the service by their ServiceAccounts. */
  readonly acceptsServiceAccountTokens: boolean;
}

const controllerName = "records";
/** Jobs and batches that are reconciled at the same time. */
const concurrentReconciliations = 8;
/** Between two checks whether this replica leads. */
const leadershipPollMs = 1_000;

const maxLeadRetryMs = 30_000;
/** A pod that continues the work of others waits so long for their logs, which then come first. */
const readWaitMs = 10_000;

/**
 * Runs jobs as custom resources, which the operator works on. It closes the client. The records are
 * kept in step with the resources of the cluster, including those that others created, and all of
 * them are reconciled at the start. Of several replicas the leader does that.
 */
export function createClusterExecutor(options: ClusterExecutorOptions): Executor {
  return new ClusterExecutor(options);
}

class ClusterExecutor implements Executor {
  readonly workers: WorkerAuthentication;
  readonly authenticateCaller: CallerAuthentication | undefined;
  readonly #context: SyncContext;
  readonly #changes: RecordChangeSource;
  readonly #watches: readonly ResourceWatch[];
  readonly #log: Log;
  readonly #observer: ControllerObserver;
  readonly #following: Promise<void>;
  readonly #unsubscribe: () => void;
  readonly #closing = new AbortController();
  #running: RunningController | undefined;
  #isSynced = false;

  constructor(options: ClusterExecutorOptions) {
    const { records, log, metrics } = options;
    const changes = new RecordChangeSource(records.changes);
    const context = createSyncContext(options, (id) => changes.enqueue([id]));
    this.workers = authenticateWorkers(context, options.workerServiceAccount);
    const callers = options.acceptsServiceAccountTokens
      ? new ServiceAccountCallers(options)
      : undefined;
    this.authenticateCaller = callers && ((token, action) => callers.authenticate(token, action));
    this.#changes = changes;
    this.#context = context;
    this.#watches = [context.jobs, context.batches, context.pods];
    this.#log = log;
    this.#unsubscribe = records.changes.onGap(() => {
      const unfinished = this.#listUnfinished().then((ids) => changes.enqueue(ids));
      unfinished.catch((error: unknown) => this.#fail(error));
    });
    this.#following = this.#followLeader();
    metrics.trackCaches(this.#watches);
    this.#observer = metrics.createControllerObserver(controllerName);
  }

  projectNamespace(project: string): string {
    return projectNamespace(this.#context.namespaces, project);
  }

  submit(_project: string, jobIds: readonly string[]): void {
    this.#changes.enqueue(jobIds);
  }

  /** Unknown: Kubernetes chooses which pod starts next. */
  queuePosition(): undefined {}

  awaitsRecord(jobId: string): boolean {
    return this.#context.jobs.cache.byIndex(byId, jobId).some((resource) => {
      const isKept = resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
      return isKept && resource.status?.report?.recorded !== true;
    });
  }

  readinessProblem(): string | undefined {
    const { replica } = this.#context.records;
    if (this.#running !== undefined || (this.#isSynced && !replica.isLeader())) return undefined;
    const [problem] = this.#watches.flatMap((watch) => watch.problem ?? []);
    return problem ?? "The cluster's resources are being read";
  }

  livenessProblem(): string | undefined {
    const [hung] = this.#watches.filter(({ isHung }) => isHung);
    return hung && `The watch of ${hung.resource} neither receives anything nor retries`;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unsubscribe();
    this.#changes.close();
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#following;
    const stopped = this.#running?.stop();
    await this.#context.client.close();
    await stopped;
  }

  /** Reconciles for as long as this replica leads. */
  async #followLeader(): Promise<void> {
    const { signal } = this.#closing;
    const synced = Promise.all(this.#watches.map((watch) => watch.synced));
    this.#isSynced = await Promise.race([
      synced.then(() => true),
      once(signal, "abort").then(() => false),
    ]).catch((error: unknown) => this.#fail(error));
    if (!this.#isSynced) return;
    // A lead that fails is tried again: without it nothing of the cluster is recorded.
    for (let failures = 0; !signal.aborted;) {
      failures = (await this.#lookWhoLeads()) ? 0 : failures + 1;
      const pauseMs = failures === 0 ? leadershipPollMs : backOffMs(failures, maxLeadRetryMs);
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  async #lookWhoLeads(): Promise<boolean> {
    const { replica } = this.#context.records;
    try {
      if (!replica.isLeader()) await this.#standBy();
      else if (this.#running === undefined) await this.#lead();
      return true;
    } catch (error) {
      return this.#fail(error);
    }
  }

  async #lead(): Promise<void> {
    const controller = recordController(this.#context, this.#changes);
    // It takes what is enqueued while the list is read.
    const running = startController(controller, {
      clock: systemClock,
      log: this.#log,
      observer: this.#observer,
    });
    try {
      this.#changes.enqueue(await this.#listUnfinished());
    } catch (error) {
      await running.stop();
      throw error;
    }
    this.#running = running;
  }

  async #standBy(): Promise<void> {
    const stopped = this.#running?.stop();
    this.#running = undefined;
    await stopped;
    this.#context.logCollector.standBy();
  }

  async #listUnfinished(): Promise<string[]> {
    const { cluster, attempts } = this.#context.records;
    const jobs = await cluster.listUnfinishedJobs();
    return [...jobs, ...(await attempts.listLivePods()).map(({ jobId }) => jobId)];
  }

  #fail(error: unknown): false {
    if (this.#closing.signal.aborted) return false;
    const message = "The cluster's resources cannot be reconciled with the records";
    this.#log("error", message, { error });
    return false;
  }
}

function authenticateWorkers(context: SyncContext, serviceAccount: string): WorkerAuthentication {
  const { client, namespaces, records, logCollector, now } = context;
  return new PodAuthentication({
    client,
    namespaces,
    records,
    now,
    pods: context.pods.cache,
    logCollector,
    recordEndedPods: async (job) => {
      await recordEndedPods(context, job);
      await logCollector.finishReads(job.job.id, readWaitMs);
    },
    serviceAccount,
  });
}

function recordController(context: SyncContext, changes: RecordChangeSource): Controller {
  return {
    name: controllerName,
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

/** A job changes many times a second while it is worked on; its status is written less often. */
const coalesceMs = 500;

/** Ids of jobs and batches whose records change. */
class RecordChangeSource implements Source {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #unsubscribe: readonly (() => void)[];
  /** Nobody before the subscription, at which everything is reconciled. */
  #listener: Parameters<Source["subscribe"]>[0] = () => {};

  constructor(changes: Records["changes"]) {
    this.#unsubscribe = [
      changes.on("cancelling", (id) => this.#listener(id, "urgent")),
      changes.on("changed", (id) => this.#enqueueLater(id)),
      changes.onRemoteCommit(({ waiting }) => this.enqueue([...waiting])),
    ];
  }

  keys(): Iterable<string> {
    return [];
  }

  subscribe(listener: Parameters<Source["subscribe"]>[0]): () => void {
    this.#listener = listener;
    return () => {
      this.#listener = () => {};
    };
  }

  /** Reconciles jobs and batches at once. */
  enqueue(ids: readonly string[]): void {
    for (const id of ids) this.#listener(id, "normal");
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #enqueueLater(id: string): void {
    if (this.#timers.has(id)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(id);
      this.#listener(id, "normal");
    }, coalesceMs);
    this.#timers.set(id, timer);
  }
}
