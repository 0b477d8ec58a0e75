import { resourceLabels } from "../src/contract/resource-labels.ts";
import type { Target } from "../src/contract/target.ts";
import {
  batches,
  type CompressionJobObject,
  compressionJobs,
} from "../src/resources/custom-resources.ts";
import { resolveJobId } from "../src/resources/job-identity.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { type ObservedEvent, observedResources } from "../src/resources/observed-resources.ts";
import type { KubernetesObject, Stored } from "../src/kubernetes/resources.ts";
import { createBatchController } from "./controllers/batch/batch-controller.ts";
import { createCompressionJobController } from "./controllers/compression-job/compression-job-controller.ts";
import { jobIdIndex } from "./controllers/compression-job/observe-compression-job.ts";
import { trimCompressionJob } from "./controllers/compression-job/trim-compression-job.ts";
import {
  involvedObjectIndex,
  warningFieldSelector,
} from "./controllers/compression-job/warning-event.ts";
import type { JobSettings } from "./controllers/compression-job/observed-state.ts";
import { systemClock } from "../src/controller-runtime/clock.ts";
import type { Log } from "../src/log/json-log.ts";
import { type RunOptions, runControllers } from "../src/controller-runtime/run-controllers.ts";
import { watchResource } from "../src/controller-runtime/watch-resource.ts";

export interface OperatorOptions extends Pick<
  RunOptions,
  "election" | "health" | "metrics" | "log"
> {
  readonly client: KubernetesClient;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
}

const component = "model-optimization-operator";
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

/** Waits for the leadership and does what CompressionJobs and Batches ask for, until `stop`. */
export async function runOperator(options: OperatorOptions, stop: AbortSignal): Promise<void> {
  const { client, targets, settings, log } = options;
  const watched = watchOperatorResources({ client, log });
  await runControllers(
    {
      ...options,
      component,
      watched: Object.values(watched),
      controllers: (leader) => [
        createCompressionJobController({
          ...leader,
          ...watched,
          targets,
          settings,
          clock: systemClock,
        }),
        createBatchController({ ...leader, ...watched, clock: systemClock }),
      ],
    },
    stop,
  );
}
