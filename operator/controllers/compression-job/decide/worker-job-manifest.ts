import { backoffLimit, podFailurePolicy } from "./pod-failure-policy.ts";
import { apiVersion } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import {
  resourceLabels,
  sharesAnnotation,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import {
  workerContainer,
  workerStop,
  workerTokenAudience,
} from "../../../../src/contract/worker-protocol/messages.ts";
import type { JobCosts } from "../../../../src/contract/jobs/telemetry.ts";
import { quantityValue } from "../../../../src/contract/text/kubernetes-names.ts";
import type { KubernetesJob, Pod } from "../../../../src/kubernetes/resources.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { type JobStep, labelValue, workerJobName } from "../../../../src/resources/job-identity.ts";
import type { WorkerSettings } from "../observe/job-settings.ts";

type Metadata = NonNullable<KubernetesJob["metadata"]>;
type WorkerJobSpec = NonNullable<KubernetesJob["spec"]>;

type OwnerMetadata = Pick<CompressionJob["metadata"], "name" | "uid" | "labels">;

interface WorkerJobPlan extends WorkerPodPlan {
  readonly resource: { readonly metadata: OwnerMetadata };
  readonly step: JobStep;
  readonly parallelism: number;
}

/** The worker Job for a step of a job. */
export function workerJobManifest(plan: WorkerJobPlan, settings: WorkerSettings): KubernetesJob {
  const { resource, step, parallelism } = plan;
  const selectorLabels = workerLabels(plan);
  const queue = findQueue(resource, plan.target);
  const suspend = queue && true;
  return {
    metadata: workerJobMetadata(plan, { ...selectorLabels, ...queueLabels(queue) }),
    spec: {
      ...completionFields(step, parallelism),
      // A pod is replaced only when it has ended, so that two pods of a step never use a GPU each.
      podReplacementPolicy: "Failed",
      podFailurePolicy,
      ...definedFields({ suspend }),
      // Saves every pod the four labels of the Job controller. A job's id is as unique as they are.
      manualSelector: true,
      selector: { matchLabels: selectorLabels },
      template: {
        metadata: podMetadata(plan.target, selectorLabels),
        spec: workerPodSpec(plan, settings),
      },
    },
  };
}

/** How many pods of a worker Job have to complete, how many run at once, and how often each. */
function completionFields(step: JobStep, parallelism: number): Partial<WorkerJobSpec> {
  if (step !== "optimize") return { backoffLimit };
  return {
    completionMode: "Indexed",
    completions: parallelism,
    parallelism,
    backoffLimitPerIndex: backoffLimit,
    maxFailedIndexes: 0,
  };
}

function podMetadata({ pod = {} }: ConfiguredTarget, selectorLabels: Record<string, string>) {
  const { labels, annotations } = pod;
  return { labels: { ...labels, ...selectorLabels }, ...definedFields({ annotations }) };
}

function workerLabels({ resource, jobId, step }: WorkerJobPlan): Record<string, string> {
  const { name } = resource.metadata;
  return definedFields({
    [resourceLabels.jobId]: jobId,
    [resourceLabels.job]: name === jobId ? undefined : labelValue(name),
    [resourceLabels.step]: step === "work" ? undefined : step,
  });
}

type Queue = NonNullable<ConfiguredTarget["queue"]>;

/**
 * Kueue's queue that admits the job's worker Jobs, which are created suspended: labels of the
 * resource come before what its target says.
 */
function findQueue(
  { metadata: { labels = {} } }: { readonly metadata: Pick<CompressionJob["metadata"], "labels"> },
  target: ConfiguredTarget,
): Queue | undefined {
  const name = labels[resourceLabels.queue] ?? target.queue?.name;
  if (name === undefined) return undefined;
  const priorityClass = labels[resourceLabels.queuePriority] ?? target.queue?.priorityClass;
  return priorityClass === undefined ? { name } : { name, priorityClass };
}

function queueLabels(queue: Queue | undefined): Record<string, string> {
  return definedFields({
    [resourceLabels.queue]: queue?.name,
    [resourceLabels.queuePriority]: queue?.priorityClass,
  });
}

function workerJobMetadata(
  { resource, step, parallelism }: WorkerJobPlan,
  labels: Record<string, string>,
): Metadata {
  const { name } = resource.metadata;
  const annotations = step === "shard" ? { [sharesAnnotation]: String(parallelism) } : undefined;
  return {
    name: workerJobName(name, step),
    labels,
    ...definedFields({ annotations }),
    ownerReferences: [controllerReference(resource.metadata)],
  };
}

function controllerReference({ name, uid }: OwnerMetadata) {
  const { kind } = compressionJobs;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

type PodSpec = NonNullable<Pod["spec"]>;
type Container = PodSpec["containers"][number];
type Volume = NonNullable<PodSpec["volumes"]>[number];

type CheckedFields = Pick<
  PodSpec,
  "affinity" | "topologySpreadConstraints" | "imagePullSecrets" | "volumes"
>;

interface WorkerPodPlan {
  readonly jobId: string;
  readonly target: ConfiguredTarget;
  readonly deadlineSeconds: number;
  /** What the step takes, where that is known. */
  readonly costs?: JobCosts | undefined;
}

const tokenSeconds = 3600;
const uid = 10_001;
const workDirectory = "/work";
const tokenDirectory = "/var/run/secrets/modeloptimization.dev/token";

function workerPodSpec(plan: WorkerPodPlan, settings: WorkerSettings): PodSpec {
  const { target, deadlineSeconds } = plan;
  const { nodeSelector, tolerations, runtimeClassName, priorityClassName, pod = {} } = target;
  const { resourceClaims } = pod;
  // The API server checked the content when the operator started.
  const {
    affinity,
    topologySpreadConstraints,
    imagePullSecrets,
    volumes = [],
  } = pod as CheckedFields;
  return {
    restartPolicy: "Never",
    // The pod's deadline and not the Job's: the time without a node does not count.
    activeDeadlineSeconds: deadlineSeconds,
    terminationGracePeriodSeconds: workerStop.graceSeconds,
    serviceAccountName: settings.serviceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // The kernel keeps signals from a first process which does not handle them yet.
    shareProcessNamespace: true,
    securityContext: {
      runAsNonRoot: true,
      ...userIds(settings),
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...definedFields({ nodeSelector, runtimeClassName, priorityClassName }),
    ...definedFields({ tolerations: tolerations?.map(definedFields) }),
    ...definedFields({ affinity, topologySpreadConstraints, imagePullSecrets }),
    ...definedFields({ resourceClaims: resourceClaims?.map(podClaim) }),
    containers: [buildContainer(plan, settings)],
    volumes: [workVolume(target), tokenVolume, ...volumes],
  };
}

function userIds({ hasOwnUser }: WorkerSettings): PodSpec["securityContext"] {
  return hasOwnUser ? { runAsUser: uid, runAsGroup: uid, fsGroup: uid } : {};
}

type Claim = NonNullable<NonNullable<ConfiguredTarget["pod"]>["resourceClaims"]>[number];

/** Which request of the claim is used is said by the container. */
function podClaim(used: Claim) {
  const { request: _, ...claim } = used;
  return claim;
}

function workVolume({ scratch }: ConfiguredTarget): Volume {
  return { name: "work", emptyDir: definedFields({ sizeLimit: scratch }) };
}

const tokenVolume: Volume = {
  name: "token",
  projected: {
    sources: [
      {
        serviceAccountToken: {
          path: "token",
          audience: workerTokenAudience,
          expirationSeconds: tokenSeconds,
        },
      },
    ],
  },
};

function buildContainer(
  { jobId, target, costs }: WorkerPodPlan,
  settings: WorkerSettings,
): Container {
  return {
    name: workerContainer,
    image: target.image ?? settings.image,
    imagePullPolicy: target.pod?.imagePullPolicy ?? "IfNotPresent",
    env: [...(target.pod?.env ?? []), ...workerEnvironment(jobId, settings)],
    resources: containerResources(target, costs),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    terminationMessagePolicy: "File",
    volumeMounts: workerVolumeMounts(target),
  };
}

function workerVolumeMounts({
  pod = {},
}: ConfiguredTarget): NonNullable<Container["volumeMounts"]> {
  return [
    { name: "work", mountPath: workDirectory },
    { name: "token", mountPath: tokenDirectory, readOnly: true },
    ...(pod.volumeMounts ?? []),
  ];
}

function workerEnvironment(jobId: string, { serviceUrl }: WorkerSettings) {
  const variables = {
    MOS_SERVICE_URL: serviceUrl,
    MOS_JOB_ID: jobId,
    MOS_JOB_TOKEN_FILE: `${tokenDirectory}/token`,
    MOS_WORK_DIR: workDirectory,
    TMPDIR: workDirectory,
  };
  return Object.entries(variables).map(([name, value]) => ({ name, value }));
}

/** What a small job needs, for targets that say nothing: nodes are not filled without measure. */
const defaultRequests = { cpu: "100m", memory: "256Mi", disk: "256Mi" };

/** Memory and GPUs are limited to what is requested; CPU and disk only by the target's limits. */
function containerResources(
  { gpu, resources = {}, scratch, pod: { resourceClaims } = {} }: ConfiguredTarget,
  { peakMemoryBytes, diskBytes }: Partial<JobCosts> = {},
): NonNullable<Container["resources"]> {
  const { cpu, memory, ephemeralStorage = scratch, limits = {} } = resources;
  const claims = resourceClaims?.map(({ name, request }) => ({
    name,
    ...definedFields({ request }),
  }));
  const gpus = gpu && { [gpu.resource]: String(gpu.count) };
  return {
    requests: {
      cpu: cpu ?? sizeRequest(defaultRequests.cpu, undefined, limits.cpu),
      memory: memory ?? sizeRequest(defaultRequests.memory, peakMemoryBytes, limits.memory),
      "ephemeral-storage":
        ephemeralStorage ?? sizeRequest(defaultRequests.disk, diskBytes, limits.ephemeralStorage),
    },
    limits: {
      ...definedFields({
        cpu: limits.cpu,
        memory: limits.memory ?? memory,
        "ephemeral-storage": limits.ephemeralStorage,
      }),
      ...gpus,
    },
    ...definedFields({ claims }),
  };
}

/** What is known to be taken, no less than the default and no more than the limit. */
function sizeRequest(least: string, taken: number | undefined, limit: string | undefined): string {
  const [known, size] = [taken ?? 0, quantityValue(least)];
  if (limit !== undefined && Math.max(known, size) > quantityValue(limit)) return limit;
  return known > size ? `${Math.ceil(known / mebibyte)}Mi` : least;
}

const mebibyte = 1024 ** 2;

type DefinedFields<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Leaves out what is undefined, which types of the Kubernetes client do not allow. */
function definedFields<T extends object>(fields: T): DefinedFields<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as DefinedFields<T>;
}
