import type { ConfiguredTarget } from "../src/contract/custom-resources/target-pod.ts";
import { systemClock as clock } from "../src/controller-runtime/clock.ts";
import { type RunOptions, runControllers } from "../src/controller-runtime/run-controllers.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { scopeClients, type ServedNamespaces } from "../src/resources/served-namespaces.ts";
import { createBatchController } from "./controllers/batch/batch-controller.ts";
import { createCompressionJobController } from "./controllers/compression-job/compression-job-controller.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import { registerUnfinishedJobs } from "./controllers/compression-job/unfinished-job-metrics.ts";
import { registerWorkerFailures } from "./controllers/compression-job/worker-failure-metrics.ts";
import { watchOperatorResources } from "./watch-operator-resources.ts";

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
