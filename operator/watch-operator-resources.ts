import { resourceLabels } from "../src/contract/resource-labels.ts";
import { watchResource } from "../src/controller-runtime/watch-resource.ts";
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
import { jobIdIndex } from "./controllers/compression-job/observe/observe-compression-job.ts";
import { trimCompressionJob } from "./controllers/compression-job/observe/trim-compression-job.ts";
import {
  involvedObjectIndex,
  warningFieldSelector,
} from "./controllers/compression-job/observe/warning-event.ts";

const workerSelection = {
  labelSelector: resourceLabels.jobId,
  indexers: {
    [jobIdIndex]: ({ metadata }: Stored<KubernetesObject>) => {
      const id = metadata.labels?.[resourceLabels.jobId];
      return id === undefined ? [] : [id];
    },
  },
};

/** Caches of everything that the controllers read. */
export function watchOperatorResources(watch: {
  readonly client: KubernetesClient;
  readonly log: Log;
}) {
  return {
    compressionJobs: watchResource({
      ...watch,
      type: compressionJobs,
      transform: trimCompressionJob,
      indexers: { [jobIdIndex]: (job: Stored<CompressionJobObject>) => [resolveJobId(job)] },
    }),
    batches: watchResource({ ...watch, type: batches }),
    workerJobs: watchResource({ ...watch, ...workerSelection, type: observedResources.jobs }),
    pods: watchResource({ ...watch, ...workerSelection, type: observedResources.pods }),
    warnings: watchResource({
      ...watch,
      type: observedResources.events,
      fieldSelector: warningFieldSelector,
      indexers: {
        [involvedObjectIndex]: ({ involvedObject }: ObservedEvent) => [involvedObject.uid ?? ""],
      },
    }),
  };
}
