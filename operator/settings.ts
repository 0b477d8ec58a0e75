import { z } from "zod";
import { everyAddress, namespaceList, number, text } from "../src/settings/parse-environment.ts";
import { operatorLease } from "../src/resources/permissions.ts";
import type { Pod } from "../src/kubernetes/resources.ts";

type PodSpec = NonNullable<Pod["spec"]>;
type Volume = NonNullable<PodSpec["volumes"]>[number];
type VolumeMount = NonNullable<PodSpec["containers"][number]["volumeMounts"]>[number];

const seconds = number.pipe(z.int().min(1).max(31_536_000));

const workerVolumes = z.strictObject({
  volumes: z.array(
    z.custom<Volume>((value) => z.looseObject({ name: text }).safeParse(value).success, {
      error: "must be a volume with a name",
    }),
  ),
  volumeMounts: z.array(
    z.custom<VolumeMount>(
      (value) => z.looseObject({ name: text, mountPath: text }).safeParse(value).success,
      { error: "must be a mount with a name and a mountPath" },
    ),
  ),
});

function parseJson(json: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    context.addIssue(`must be JSON: ${String(error)}`);
    return z.NEVER;
  }
}

/** Every environment variable that the operator reads. */
export const settings = z.object({
  MOS_NAMESPACE: text
    .optional()
    .describe("Namespace of the operator; without it the pod's, or the kubeconfig's."),
  MOS_NAMESPACES: namespaceList.describe(
    "Other namespaces whose resources are worked on, separated by commas; `*` is every one.",
  ),
  MOS_SERVICE_URL: z.url({ protocol: /^https?$/ }).describe("Where workers reach the service."),
  MOS_SERVICE_CA_FILE: text
    .optional()
    .describe(
      [
        "File in the workers' pods with the authority of the service's certificate,",
        "where no public one signs it.",
      ].join(" "),
    ),
  MOS_WORKER_USER: z
    .enum(["own", "cluster"])
    .default("own")
    .describe("Whether workers' pods name the user that they run as, or the cluster chooses it."),
  MOS_TARGETS_FILE: text
    .optional()
    .describe("YAML file of the targets, the service's own; without it built-in ones."),
  MOS_WORKER_IMAGE: text.describe("Image of workers, for targets that name none."),
  MOS_WORKER_IMAGE_PULL_POLICY: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
  MOS_WORKER_SERVICE_ACCOUNT: text
    .default("model-optimization-worker")
    .describe("Service account of workers."),
  MOS_WORKER_VOLUMES: text
    .default('{"volumes": [], "volumeMounts": []}')
    .transform(parseJson)
    .pipe(workerVolumes)
    .describe(
      [
        "JSON of the volumes with models for `file://` sources:",
        "`volumes` of the pods, `volumeMounts` of the workers.",
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
    .describe("Seconds of work of jobs that name no deadline."),
  MOS_POD_START_SECONDS: seconds
    .default(600)
    .describe("A pod whose image or configuration cannot be used for so long fails its job."),
  MOS_LEASE: text.default(operatorLease).describe("Lease by which operators elect a leader."),
  MOS_POD_NAME: text.optional().describe("Name of this operator in the election."),
  MOS_HEALTH_HOST: text
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
  MOS_LEASE: true,
  MOS_POD_NAME: true,
  KUBERNETES_SERVICE_HOST: true,
  KUBERNETES_SERVICE_PORT: true,
});

/** What `uninstall` reads. */
export const uninstallSettings = connectionSettings.extend({
  MOS_WORKER_SERVICE_ACCOUNT: settings.shape.MOS_WORKER_SERVICE_ACCOUNT,
  MOS_DEPLOYMENT: text.describe("The operator's Deployment, which it ends."),
});
