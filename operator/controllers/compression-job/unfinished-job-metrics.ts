import type { Registry } from "prom-client";
import { isTerminal } from "../../../src/contract/status.ts";
import { registerGauge } from "../../../src/controller-runtime/register-gauge.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import { requireNamespace } from "../../../src/kubernetes/require-namespace.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";

const gauge = {
  name: "mos_unfinished_jobs",
  help: "CompressionJobs that have not ended, by their namespace.",
  label: "job_namespace",
};

/** Registers a gauge of each namespace in which jobs wait or run. */
export function registerUnfinishedJobs(
  registry: Registry,
  compressionJobs: WatchedResource<CompressionJobObject>,
): void {
  registerGauge(registry, gauge, () => {
    const counts = new Map<string, number>();
    for (const job of compressionJobs.cache.values()) {
      if (isTerminal(job.status?.status ?? "Pending")) continue;
      const namespace = requireNamespace(job);
      counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    return counts;
  });
}
