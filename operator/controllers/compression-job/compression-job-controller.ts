import { resourceLabels } from "../../../src/contract/resource-labels.ts";
import type { Target } from "../../../src/contract/target.ts";
import type { ObservedEvent, ObservedPod } from "../../../src/resources/observed-resources.ts";
import type { KubernetesObject, Stored } from "../../../src/kubernetes/resources.ts";
import type { Clock } from "../../../src/controller-runtime/clock.ts";
import { type Controller, createSource } from "../../../src/controller-runtime/controller.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import { StartedJobs } from "./started-jobs.ts";
import {
  CompressionJobReconciler,
  type ReconcilerDependencies,
} from "./compression-job-reconciler.ts";
import { jobIdIndex, observeCompressionJob } from "./observe-compression-job.ts";
import type { JobSettings } from "./observed-state.ts";

export interface CompressionJobControllerOptions extends Omit<
  ReconcilerDependencies,
  "startedJobs"
> {
  readonly pods: WatchedResource<ObservedPod>;
  /** What the cluster warns of. */
  readonly warnings: WatchedResource<ObservedEvent>;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly clock: Clock;
}

/** They mostly wait for answers of the API server. */
const workers = 64;

/** Does the work of CompressionJobs by Jobs, and says what becomes of it. */
export function createCompressionJobController(
  options: CompressionJobControllerOptions,
): Controller {
  const { client, compressionJobs, workerJobs, pods, warnings, targets, settings, clock } = options;
  const startedJobs = new StartedJobs(client);
  const dependencies = { ...options, startedJobs };
  const mapToKeys = ({ metadata }: Stored<KubernetesObject>) => {
    const id = metadata.labels?.[resourceLabels.jobId] ?? "";
    return compressionJobs.cache.byIndex(jobIdIndex, id).map((job) => job.metadata.name);
  };
  const findInvolvedObject = (name: string) =>
    [workerJobs.cache.get(name) ?? pods.cache.get(name) ?? []].flat();
  return {
    name: "compression-job",
    workers,
    sources: [
      createSource(compressionJobs, {
        mapToKeys: ({ metadata }) => [metadata.name],
        selectLane: ({ metadata, spec }) =>
          spec.cancel || metadata.deletionTimestamp ? "urgent" : "normal",
        isGrouped: true,
      }),
      createSource(workerJobs, { mapToKeys, isGrouped: true }),
      createSource(pods, { mapToKeys, isGrouped: true }),
      createSource(warnings, {
        mapToKeys: ({ involvedObject: { name = "" } }) =>
          findInvolvedObject(name).flatMap(mapToKeys),
        isGrouped: true,
      }),
    ],
    async reconcile(name, run) {
      const resource = compressionJobs.cache.get(name);
      if (resource === undefined) {
        startedJobs.forget(name);
        return undefined;
      }
      const caches = { workerJobs: workerJobs.cache, pods: pods.cache, warnings: warnings.cache };
      const observed = observeCompressionJob(resource, {
        ...caches,
        targets,
        settings,
        now: clock.date(),
      });
      return new CompressionJobReconciler(dependencies, run, resource).reconcile(observed);
    },
  };
}
