import { systemClock } from "../../operator/runtime/clock.ts";
import { type RunningController, sourceOf, startController } from "../../operator/runtime/controller.ts";
import { type Watched, watchResource } from "../../operator/runtime/watch-resource.ts";
import { resourceLabels } from "../contract/custom-resources.ts";
import { jobId as jobIdSchema } from "../contract/id.ts";
import type { Target } from "../contract/target.ts";
import type { Log as RuntimeLog } from "../../operator/runtime/json-log.ts";
import { batches, compressionJobs } from "../kubernetes/custom-resources.ts";
import { batchIdOf, jobIdOf } from "../kubernetes/job-identity.ts";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import { observedResources } from "../kubernetes/observed-resources.ts";
import type { Records } from "../records/open-records.ts";
import type { Executor } from "../server/executor.ts";
import type { Log } from "../server/json-log.ts";
import { settlePods } from "./job-pods.ts";
import { byId, type Mirror } from "./mirror.ts";
import { PodCaptures } from "./pod-captures.ts";
import { podAuthentication } from "./pod-authentication.ts";
import { reconcileBatch } from "./reconcile-batch.ts";
import { reconcileJob } from "./reconcile-job.ts";
import { type RecordChanges, recordChanges } from "./record-changes.ts";
import { readPod } from "./worker-pod.ts";

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
const workers = 8;

/**
 * Has jobs worked on as custom resources, which the operator runs. Records are the index of what is in the cluster: what
 * others made there is recorded too, and everything is looked at again at the start.
 */
export function createClusterExecutor(options: ClusterExecutorOptions): Executor {
  const { records, client, now, log } = options;
  const changes = recordChanges(records);
  const mirror = openMirror(options, changes);
  const watches: readonly Watched[] = [mirror.jobs, mirror.batches, mirror.pods];
  let running: RunningController | undefined;
  const start = async () => {
    await Promise.all(watches.map(({ synced }) => synced));
    changes.add(await records.held.unfinishedJobs());
    changes.add((await records.attempts.livePods()).map(({ jobId }) => jobId));
    running = startController(
      {
        name: "mirror",
        workers,
        sources: [
          sourceOf(mirror.batches, { keysOf: (batch) => [batchIdOf(batch)] }),
          sourceOf(mirror.jobs, { keysOf: (job) => [jobIdOf(job)] }),
          sourceOf(mirror.pods, { keysOf: (pod) => [readPod(pod).jobId] }),
          changes,
        ],
        reconcile: (id, run) =>
          jobIdSchema.safeParse(id).success ? reconcileJob(mirror, id, run) : reconcileBatch(mirror, id, run),
      },
      { clock: systemClock, log: runtimeLog(log) },
    );
  };
  let isClosing = false;
  const started = start().catch((error: unknown) => {
    if (!isClosing) log("error", "The cluster's resources cannot be mirrored", { error });
  });

  return {
    namespace: client.namespace,
    workers: podAuthentication({
      client,
      records,
      now,
      pods: mirror.pods.cache,
      captures: mirror.captures,
      settle: async (jobId) => void (await settlePods(mirror, jobId)),
      serviceAccount: options.workerServiceAccount,
    }),
    submit: (jobIds) => changes.add(jobIds),
    notReady() {
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

function openMirror(options: ClusterExecutorOptions, changes: RecordChanges): Mirror {
  const { records, client, targets, resourceTtlSeconds, now, log } = options;
  const watchLog = runtimeLog(log);
  const idIndex = { [byId]: (resource: Parameters<typeof jobIdOf>[0]) => [jobIdOf(resource)] };
  return {
    records,
    client,
    resourceTtlSeconds,
    look: (id) => changes.add([id]),
    now,
    log,
    installation: { namespace: client.namespace, targets },
    captures: new PodCaptures({ records, client, log }),
    writtenAt: new Map(),
    jobs: watchResource({ client, type: compressionJobs, indexers: idIndex, log: watchLog }),
    batches: watchResource({
      client,
      type: batches,
      indexers: { [byId]: (batch) => [batchIdOf(batch)] },
      log: watchLog,
    }),
    pods: watchResource({
      client,
      type: observedResources.pods,
      labelSelector: resourceLabels.jobId,
      indexers: { [byId]: (pod) => [readPod(pod).jobId] },
      log: watchLog,
    }),
  };
}

/** The service's own log has no warnings. */
function runtimeLog(log: Log): RuntimeLog {
  return (level, message, fields) => log(level === "warn" ? "error" : level, message, fields);
}
