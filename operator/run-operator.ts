import { resourceLabels } from "../src/contract/custom-resources.ts";
import type { Target } from "../src/contract/target.ts";
import { batches, type CompressionJobObject, compressionJobs } from "../src/kubernetes/custom-resources.ts";
import { jobIdOf } from "../src/kubernetes/job-identity.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { type ObservedEvent, observedResources } from "../src/kubernetes/observed-resources.ts";
import type { KubernetesObject, Stored } from "../src/kubernetes/resources.ts";
import { createBatchController } from "./controllers/batch/batch-controller.ts";
import { createCompressionJobController } from "./controllers/compression-job/compression-job-controller.ts";
import { jobIdIndex } from "./controllers/compression-job/read-world.ts";
import { trimCompressionJob } from "./controllers/compression-job/trim-compression-job.ts";
import { aboutIndex, clusterWarnings } from "./controllers/compression-job/warning.ts";
import type { JobSettings } from "./controllers/compression-job/world.ts";
import { systemClock } from "./runtime/clock.ts";
import type { Log } from "./runtime/json-log.ts";
import { type RunOptions, runControllers } from "./runtime/run-controllers.ts";
import { watchResource } from "./runtime/watch-resource.ts";

export interface OperatorOptions extends Pick<RunOptions, "election" | "health" | "metrics" | "log"> {
  readonly client: KubernetesClient;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
}

const component = "model-optimization-operator";
const ourJobs = {
  labelSelector: resourceLabels.jobId,
  indexers: {
    [jobIdIndex]: ({ metadata }: Stored<KubernetesObject>) => {
      const id = metadata.labels?.[resourceLabels.jobId];
      return id === undefined ? [] : [id];
    },
  },
};

/** Caches of everything that the controllers read. */
export function watchOurs(watch: { readonly client: KubernetesClient; readonly log: Log }) {
  return {
    compressionJobs: watchResource({
      ...watch,
      type: compressionJobs,
      transform: trimCompressionJob,
      indexers: { [jobIdIndex]: (job: Stored<CompressionJobObject>) => [jobIdOf(job)] },
    }),
    batches: watchResource({ ...watch, type: batches }),
    jobs: watchResource({ ...watch, ...ourJobs, type: observedResources.jobs }),
    pods: watchResource({ ...watch, ...ourJobs, type: observedResources.pods }),
    warnings: watchResource({
      ...watch,
      type: observedResources.events,
      fieldSelector: clusterWarnings,
      indexers: { [aboutIndex]: ({ involvedObject }: ObservedEvent) => [involvedObject.uid ?? ""] },
    }),
  };
}

/** Waits for the leadership and does what CompressionJobs and Batches ask for, until `stop`. */
export async function runOperator(options: OperatorOptions, stop: AbortSignal): Promise<void> {
  const { client, targets, settings, log } = options;
  const watched = watchOurs({ client, log });
  await runControllers(
    {
      ...options,
      component,
      watched: Object.values(watched),
      controllers: (leader) => [
        createCompressionJobController({ ...leader, ...watched, targets, settings, clock: systemClock }),
        createBatchController({ ...leader, ...watched, clock: systemClock }),
      ],
    },
    stop,
  );
}
