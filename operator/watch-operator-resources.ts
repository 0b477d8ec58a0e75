import { resourceLabels } from "../src/contract/custom-resources/resource-labels.ts";
import { watchNamespaces } from "../src/controller-runtime/watch-namespaces.ts";
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
import { jobIdIndex, jobIdKey } from "./controllers/compression-job/observe/job-id-index.ts";
import { trimCompressionJob } from "./controllers/compression-job/observe/trim-compression-job.ts";
import {
  involvedObjectIndex,
  warningFieldSelector,
} from "./controllers/compression-job/observe/warning-event.ts";
import { unfinishedJobIndexers } from "./controllers/compression-job/unfinished-job-metrics.ts";

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
