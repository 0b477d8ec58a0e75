import {
  type ActionContext,
  type ActionDependencies,
  executeAction,
  isNamespaceTerminating,
  setFinalizer,
} from "./act/execute-action.ts";
import { StartedJobs } from "./act/started-jobs.ts";
import { decide } from "./decide/decide.ts";
import {
  FirstSeen,
  jobIdIndex,
  jobIdKey,
  observeCompressionJob,
} from "./observe/observe-compression-job.ts";
import type { JobSettings } from "./observe/job-settings.ts";
import { KnownCosts } from "./observe/known-costs.ts";
import type { ObservedState } from "./observe/observed-state.ts";
import { resourceLabels } from "../../../src/contract/custom-resources/resource-labels.ts";
import type { ConfiguredTarget } from "../../../src/contract/custom-resources/target-pod.ts";
import type { Clock } from "../../../src/controller-runtime/clock.ts";
import {
  type Controller,
  createSource,
  type Requeue,
  type Source,
} from "../../../src/controller-runtime/controller.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import type { KubernetesObject, Stored } from "../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { ObservedEvent, ObservedPod } from "../../../src/resources/observed-resources.ts";

interface CompressionJobControllerOptions extends Omit<ActionDependencies, "startedJobs"> {
  /** For each list of the CompressionJobs that are served. */
  readonly scopes: readonly KubernetesClient[];
  readonly pods: WatchedResource<ObservedPod>;
  /** Warning events of the cluster. */
  readonly warnings: WatchedResource<ObservedEvent>;
  readonly targets: readonly ConfiguredTarget[];
  readonly settings: JobSettings;
  readonly clock: Clock;
}

/** Many, since they mostly wait for responses of the API server. */
const workers = 64;

/** Runs CompressionJobs as worker Jobs and reports their state. */
export function createCompressionJobController(
  options: CompressionJobControllerOptions,
): Controller {
  const { scopes, compressionJobs } = options;
  const startedJobs = new StartedJobs(scopes);
  const memory = {
    deletions: new FirstSeen(),
    startFailures: new FirstSeen(),
    starts: new FirstSeen(),
    knownCosts: new KnownCosts(),
  };
  return {
    name: "compression-job",
    workers,
    sources: createCompressionJobSources(options),
    async reconcile(key, run) {
      const resource = compressionJobs.cache.get(key);
      if (resource === undefined) {
        startedJobs.forget(key);
        return undefined;
      }
      const client = options.client.inNamespace(resource.metadata.namespace);
      const context = { ...options, client, startedJobs, run, resource };
      if (await isNamespaceTerminating(context, options.client.namespace)) {
        await setFinalizer(context, { present: false });
        return undefined;
      }
      return reconcileCompressionJob(context, observe({ ...options, ...memory }, resource));
    },
  };
}

/** What earlier observations are remembered of. */
interface ObservedBefore {
  readonly deletions: FirstSeen;
  readonly startFailures: FirstSeen;
  readonly starts: FirstSeen;
  readonly knownCosts: KnownCosts;
}

function observe(
  options: CompressionJobControllerOptions & ObservedBefore,
  resource: Stored<CompressionJobObject>,
): ObservedState {
  const { workerJobs, pods, warnings, clock } = options;
  return observeCompressionJob(resource, {
    ...options,
    workerJobs: workerJobs.cache,
    pods: pods.cache,
    warnings: warnings.cache,
    now: clock.date(),
  });
}

function createCompressionJobSources(options: CompressionJobControllerOptions): Source[] {
  const { compressionJobs, workerJobs, pods, warnings } = options;
  const mapToKeys = ({ metadata }: Stored<KubernetesObject>) => {
    const id = metadata.labels?.[resourceLabels.jobId] ?? "";
    const jobs = compressionJobs.cache.byIndex(jobIdIndex, jobIdKey(metadata, id));
    return jobs.map((job) => objectKey(job.metadata));
  };
  const mapWarningToKeys = ({ metadata, involvedObject: { name = "" } }: Stored<ObservedEvent>) => {
    const key = objectKey({ namespace: metadata.namespace, name });
    const involved = workerJobs.cache.get(key) ?? pods.cache.get(key);
    return involved === undefined ? [] : mapToKeys(involved);
  };
  return [
    createSource(compressionJobs, {
      mapToKeys: ({ metadata }) => [objectKey(metadata)],
      selectLane: ({ metadata, spec }) =>
        spec.cancel || metadata.deletionTimestamp ? "urgent" : "normal",
      isGrouped: true,
    }),
    createSource(workerJobs, { mapToKeys, isGrouped: true }),
    createSource(pods, { mapToKeys, isGrouped: true }),
    createSource(warnings, { mapToKeys: mapWarningToKeys, isGrouped: true }),
  ];
}

/** When the caches were behind the API server. */
const staleCacheRetryMs = 1_000;

/** Decides and acts; decides again where an action observed more. */
async function reconcileCompressionJob(
  context: ActionContext,
  observed: ObservedState,
): Promise<Requeue | undefined> {
  const { actions, requeueAt } = decide(observed);
  for (const action of actions) {
    const result = await executeAction(context, action, observed);
    if (result === "stale") return { requeueAfterMs: staleCacheRetryMs };
    if (result !== undefined) return reconcileCompressionJob(context, result);
  }
  if (requeueAt === undefined) return undefined;
  return { requeueAfterMs: Math.max(1, requeueAt - observed.now) };
}
