import { z } from "zod";
import {
  everyAddress,
  namespaceList,
  number,
  text,
  yaml,
} from "../src/settings/parse-environment.ts";
import { targetPod } from "../src/contract/custom-resources/target-pod.ts";

const seconds = number.pipe(z.int().min(1).max(31_536_000));

/** Every environment variable that the operator reads. */
export const settings = z.object({
  MOS_NAMESPACE: text
    .optional()
    .describe("Namespace of the operator; without it the pod's, or the kubeconfig's."),
  MOS_NAMESPACES: namespaceList.describe(
    "Other namespaces whose resources are worked on, separated by commas; `*` is every one.",
  ),
  MOS_SERVICE_URL: z.url({ protocol: /^https?$/ }).describe("Where workers reach the service."),
  MOS_WORKER_USER: z
    .enum(["own", "cluster"])
    .default("own")
    .describe("Whether workers' pods name the user that they run as, or the cluster chooses it."),
  MOS_TARGETS_FILE: text
    .optional()
    .describe("YAML file of the targets, the service's own; without it built-in ones."),
  MOS_WORKER_IMAGE: text.describe("Image of workers, for targets that name none."),
  MOS_WORKER_SERVICE_ACCOUNT: text
    .default("model-optimization-worker")
    .describe("Service account of workers."),
  MOS_WORKER_POD: yaml(targetPod)
    .prefault("{}")
    .describe(
      [
        "YAML of what the pods of all targets get, with the fields of a target's `pod`,",
        "such as volumes with models for `file://` sources.",
      ].join(" "),
    ),
  MOS_JOB_TTL_SECONDS: number
    .pipe(z.int().min(60).max(31_536_000))
    .default(3600)
    .describe("How long Jobs and pods stay when they have ended."),
  MOS_RESOURCE_TTL_SECONDS: number
    .pipe(z.int().max(31_536_000))
    .optional()
    .describe(
      [
        "How long CompressionJobs and Batches stay when they have ended, of those without",
        "`ttlSecondsAfterFinished`; without it for good.",
      ].join(" "),
    ),
  MOS_DEADLINE_SECONDS: seconds
    .default(86_400)
    .describe("Longest time of work of a job, and that of jobs that name no deadline."),
  MOS_POD_START_SECONDS: seconds
    .default(600)
    .describe("A pod whose image or configuration cannot be used for so long fails its job."),
  MOS_POD_NAME: text.optional().describe("Name of this operator in the election."),
  MOS_HOST: text
    .default(everyAddress)
    .describe("Address of /metrics, /healthz and /readyz; `*` is every one, IPv6 and IPv4."),
  MOS_HEALTH_PORT: number
    .pipe(z.int().max(65_535))
    .default(8081)
    .describe("Its port; 0 takes a free one."),
  KUBERNETES_SERVICE_HOST: text
    .optional()
    .describe("Set by Kubernetes in pods; elsewhere a kubeconfig is used."),
  KUBERNETES_SERVICE_PORT: text.default("443"),
});

/** What every command reads. */
export const connectionSettings = settings.pick({
  MOS_NAMESPACE: true,
  MOS_NAMESPACES: true,
  MOS_POD_NAME: true,
  KUBERNETES_SERVICE_HOST: true,
  KUBERNETES_SERVICE_PORT: true,
});

/** What `uninstall` reads. */
export const uninstallSettings = connectionSettings.extend({
  MOS_WORKER_SERVICE_ACCOUNT: settings.shape.MOS_WORKER_SERVICE_ACCOUNT,
});
