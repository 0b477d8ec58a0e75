import type { Registry } from "prom-client";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { registerGauge } from "../../../src/controller-runtime/register-gauge.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { requireNamespace } from "../../../src/kubernetes/require-namespace.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";

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
