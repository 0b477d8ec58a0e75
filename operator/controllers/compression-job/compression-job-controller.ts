import { resourceLabels } from "../../../src/contract/custom-resources.ts";
import type { Target } from "../../../src/contract/target.ts";
import type { ObservedEvent, ObservedPod } from "../../../src/kubernetes/observed-resources.ts";
import type { KubernetesObject, Stored } from "../../../src/kubernetes/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Controller, sourceOf } from "../../runtime/controller.ts";
import type { WatchedResource } from "../../runtime/watch-resource.ts";
import { BegunJobs } from "./begun-jobs.ts";
import { JobPass, type PassTools } from "./job-pass.ts";
import { jobIdIndex, readWorld } from "./read-world.ts";
import type { JobSettings } from "./world.ts";

export interface CompressionJobControllerOptions extends Omit<PassTools, "begunJobs"> {
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
export function createCompressionJobController(options: CompressionJobControllerOptions): Controller {
  const { client, compressionJobs, jobs, pods, warnings, targets, settings, clock } = options;
  const begunJobs = new BegunJobs(client);
  const tools = { ...options, begunJobs };
  const keysOf = ({ metadata }: Stored<KubernetesObject>) => {
    const id = metadata.labels?.[resourceLabels.jobId] ?? "";
    return compressionJobs.cache.byIndex(jobIdIndex, id).map((job) => job.metadata.name);
  };
  const childrenNamed = (name: string) => [jobs.cache.get(name) ?? pods.cache.get(name) ?? []].flat();
  return {
    name: "compression-job",
    workers,
    sources: [
      sourceOf(compressionJobs, {
        keysOf: ({ metadata }) => [metadata.name],
        laneOf: ({ metadata, spec }) => (spec.cancel || metadata.deletionTimestamp ? "urgent" : "normal"),
        isGrouped: true,
      }),
      sourceOf(jobs, { keysOf, isGrouped: true }),
      sourceOf(pods, { keysOf, isGrouped: true }),
      sourceOf(warnings, {
        keysOf: ({ involvedObject: { name = "" } }) => childrenNamed(name).flatMap(keysOf),
        isGrouped: true,
      }),
    ],
    async reconcile(name, run) {
      const object = compressionJobs.cache.get(name);
      if (object === undefined) {
        begunJobs.forget(name);
        return undefined;
      }
      const caches = { jobs: jobs.cache, pods: pods.cache, warnings: warnings.cache };
      const world = readWorld(object, { ...caches, targets, settings, now: clock.date() });
      return new JobPass(tools, run, object).carryOut(world);
    },
  };
}
