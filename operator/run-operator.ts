import { createBatchController } from "./controllers/batch/batch-controller.ts";
import { createCompressionJobController } from "./controllers/compression-job/compression-job-controller.ts";
import {
  registerUnfinishedJobs,
  registerWorkerFailures,
  unfinishedJobIndexers,
} from "./controllers/compression-job/failure-metrics.ts";
import {
  jobIdIndex,
  jobIdKey,
  trimCompressionJob,
} from "./controllers/compression-job/observe/observe-compression-job.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import {
  involvedObjectIndex,
  warningFieldSelector,
} from "./controllers/compression-job/observe/step-warning.ts";
import { resourceLabels } from "../src/contract/custom-resources/resource-labels.ts";
import type { ConfiguredTarget } from "../src/contract/custom-resources/target-pod.ts";
import { systemClock as clock } from "../src/controller-runtime/clock.ts";
import { runControllers, type RunOptions } from "../src/controller-runtime/run-controllers.ts";
import { watchNamespaces } from "../src/controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import type { KubernetesObject, Stored } from "../src/kubernetes/resources.ts";
import type { Log } from "../src/log/json-log.ts";
import {
  batches,
  type CompressionJobObject,
  compressionJobs,
} from "../src/resources/custom-resources.ts";
import { resolveJobId } from "../src/resources/job-identity.ts";
import { type ObservedEvent, observedResources } from "../src/resources/observed-resources.ts";
import { scopeClients, type ServedNamespaces } from "../src/resources/served-namespaces.ts";

interface OperatorOptions extends Pick<RunOptions, "election" | "health" | "metrics" | "log"> {
  readonly client: KubernetesClient;
  readonly namespaces: ServedNamespaces;
  readonly targets: readonly ConfiguredTarget[];
  readonly settings: JobSettings;
}

const component = "model-optimization-operator";

/** Reconciles CompressionJobs and Batches while it is the leader, until `stop`. */
export async function runOperator(options: OperatorOptions, stop: AbortSignal): Promise<void> {
  const { client, namespaces, targets, settings, metrics, log } = options;
  const { resourceTtlSeconds } = settings;
  const scopes = scopeClients(client, namespaces);
  const watched = watchOperatorResources(scopes, log);
  registerUnfinishedJobs(metrics.registry, watched.compressionJobs);
  await runControllers(
    {
      ...options,
      component,
      watched: Object.values(watched),
      controllers: (leader) => {
        registerWorkerFailures(metrics.registry, watched.pods);
        return [
          createCompressionJobController({
            ...leader,
            ...watched,
            scopes,
            targets,
            settings,
            clock,
          }),
          createBatchController({ ...leader, ...watched, clock, resourceTtlSeconds }),
        ];
      },
    },
    stop,
  );
}

const workerSelection = {
  labelSelector: resourceLabels.jobId,
  indexers: {
    [jobIdIndex]: ({ metadata }: Stored<KubernetesObject>) => {
      const id = metadata.labels?.[resourceLabels.jobId];
      return id === undefined ? [] : [jobIdKey(metadata, id)];
    },
  },
};

/** Caches of everything that the controllers read, of all namespaces that the clients see. */
export function watchOperatorResources(clients: readonly KubernetesClient[], log: Log) {
  return {
    compressionJobs: watchNamespaces(clients, {
      log,
      type: compressionJobs,
      transform: trimCompressionJob,
      indexers: {
        ...unfinishedJobIndexers,
        [jobIdIndex]: (job: Stored<CompressionJobObject>) => [
          jobIdKey(job.metadata, resolveJobId(job)),
        ],
      },
    }),
    batches: watchNamespaces(clients, { log, type: batches }),
    workerJobs: watchNamespaces(clients, { log, ...workerSelection, type: observedResources.jobs }),
    pods: watchNamespaces(clients, { log, ...workerSelection, type: observedResources.pods }),
    warnings: watchNamespaces(clients, {
      log,
      type: observedResources.events,
      fieldSelector: warningFieldSelector,
      indexers: {
        [involvedObjectIndex]: ({ involvedObject }: ObservedEvent) => [involvedObject.uid ?? ""],
      },
    }),
  };
}
