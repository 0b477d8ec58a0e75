import { workerJobManifest } from "./controllers/compression-job/decide/worker-job-manifest.ts";
import type { WorkerSettings } from "./controllers/compression-job/observe/job-settings.ts";
import type { ConfiguredTarget, TargetPod } from "../src/contract/custom-resources/target-pod.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { isPolicyRefusal, KubernetesError } from "../src/kubernetes/kubernetes-error.ts";
import { resources } from "../src/kubernetes/resources.ts";
import type { Log } from "../src/log/json-log.ts";
import { StartError } from "../src/settings/parse-environment.ts";

/**
 * Has the API server check a worker Job of each target, which it does not keep.
 * @throws StartError that names every target whose Job is refused, and why
 */
export async function checkTargetPods(
  client: KubernetesClient,
  options: {
    readonly targets: readonly ConfiguredTarget[];
    readonly settings: WorkerSettings;
    readonly log: Log;
  },
): Promise<void> {
  const { targets, settings, log } = options;
  const problems = await Promise.all(
    targets.map(async (target) => {
      try {
        await client.create(resources.jobs, exampleJob(target, settings), { dryRun: true });
        return [];
      } catch (error) {
        if (isContentRefusal(error)) return [`${target.name}: ${error.message}`];
        log("warn", "The pods of a target cannot be checked", { target: target.name, error });
        return [];
      }
    }),
  );
  if (problems.every((each) => each.length === 0)) return;
  throw new StartError(
    ["The API server refuses worker Jobs of these targets", ...problems.flat()].join("\n"),
  );
}

/** Of the content, and not by a quota or a policy, which may change, or without an answer. */
function isContentRefusal(error: unknown): error is KubernetesError {
  if (!(error instanceof KubernetesError) || isPolicyRefusal(error)) return false;
  return error.status === 400 || error.status === 422;
}

function exampleJob(target: ConfiguredTarget, settings: WorkerSettings) {
  const name = "target-check";
  const resource = { metadata: { name, uid: crypto.randomUUID() } };
  const plan = { resource, jobId: name, step: "work", target, parallelism: 1 } as const;
  return workerJobManifest({ ...plan, deadlineSeconds: 1 }, settings);
}

/** What a target's pods get besides what those of all targets do. */
export function mergePods(common: TargetPod, own: TargetPod = {}): TargetPod {
  return {
    ...common,
    ...own,
    labels: { ...common.labels, ...own.labels },
    annotations: { ...common.annotations, ...own.annotations },
    env: [...(common.env ?? []), ...(own.env ?? [])],
    volumes: [...(common.volumes ?? []), ...(own.volumes ?? [])],
    volumeMounts: [...(common.volumeMounts ?? []), ...(own.volumeMounts ?? [])],
  };
}
