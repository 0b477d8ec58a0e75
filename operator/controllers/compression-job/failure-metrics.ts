import { Counter, type Registry } from "prom-client";
import { isFailedAttempt, readPodEnd } from "./decide/pod-failure-policy.ts";
import { toWorkerPod, type WorkerPod } from "./observe/worker-pod.ts";
import type { ErrorCode } from "../../../src/contract/errors.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { registerGauge } from "../../../src/controller-runtime/metrics.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import { requireNamespace } from "../../../src/kubernetes/namespaces.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { ObservedPod } from "../../../src/resources/observed-resources.ts";

const gauge = {
  name: "mos_unfinished_jobs",
  help: "CompressionJobs that have not ended, by their namespace.",
  label: "job_namespace",
};

const unfinishedIndex = "unfinished";

/** What the gauge asks the cache for: a scrape does not read the jobs that have ended. */
export const unfinishedJobIndexers = {
  [unfinishedIndex]: ({ status }: Stored<CompressionJobObject>) =>
    isTerminal(status?.status ?? "Pending") ? [] : [unfinishedIndex],
};

/** Registers a gauge of each namespace in which jobs wait or run. */
export function registerUnfinishedJobs(
  registry: Registry,
  compressionJobs: WatchedResource<CompressionJobObject>,
): void {
  registerGauge(registry, gauge, () => {
    const counts = new Map<string, number>();
    for (const job of compressionJobs.cache.byIndex(unfinishedIndex, unfinishedIndex)) {
      const namespace = requireNamespace(job);
      counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    return counts;
  });
}

/** A rate is known only of a series that began before its first failure. */
const commonReasons: readonly ErrorCode[] = [
  "out_of_disk",
  "out_of_memory",
  "worker_crashed",
  "worker_killed",
];

/** Counts each pod of a worker that fails from now on, also where the job goes on in another. */
export function registerWorkerFailures(
  registry: Registry,
  pods: WatchedResource<ObservedPod>,
): void {
  const failures = new Counter({
    registers: [registry],
    name: "mos_worker_failures_total",
    help: "Pods of workers that failed, by error code or by the reason why the cluster ended them.",
    labelNames: ["reason"],
  });
  for (const reason of commonReasons) failures.inc({ reason }, 0);
  const counted = new Set<string>();
  const observe = (pod: Stored<ObservedPod>): string | undefined => {
    const { uid } = pod.metadata;
    const reason = counted.has(uid) ? undefined : failureReason(toWorkerPod(pod, 0));
    const isThere = pods.cache.get(objectKey(pod.metadata))?.metadata.uid === uid;
    if (!isThere) counted.delete(uid);
    else if (reason !== undefined) counted.add(uid);
    return reason;
  };
  for (const pod of pods.cache.values()) observe(pod);
  pods.onChange((pod) => {
    const reason = observe(pod);
    if (reason !== undefined) failures.inc({ reason });
  });
}

/** Undefined where the pod has not failed, or was stopped on purpose. */
function failureReason(pod: WorkerPod): string | undefined {
  if (pod.phase !== "Failed") return undefined;
  if (pod.disruption !== undefined) return pod.disruption;
  return isFailedAttempt(pod) ? readPodEnd(pod).error?.code : undefined;
}
