import { apiVersion } from "../../../src/contract/api-group.ts";
import type { CompressionJob } from "../../../src/contract/compression-job.ts";
import { resourceLabels, sharesAnnotation } from "../../../src/contract/resource-labels.ts";
import type { Target } from "../../../src/contract/target.ts";
import { workerContainer, workerExit, workerTokenAudience } from "../../../src/contract/worker.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import {
  workerJobName,
  resolveJobId,
  type JobStep,
  labelValue,
} from "../../../src/resources/job-identity.ts";
import type { KubernetesJob, Pod } from "../../../src/kubernetes/resources.ts";

type PodSpec = NonNullable<Pod["spec"]>;
type Container = PodSpec["containers"][number];
type Toleration = NonNullable<PodSpec["tolerations"]>[number];

/** What all workers of an installation have in common. */
export interface WorkerSettings {
  /** Where pods reach the service. */
  readonly serviceUrl: string;
  /** Of targets that name none. */
  readonly image: string;
  readonly imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly serviceAccount: string;
  /** Volumes with models for `file://` sources. */
  readonly volumes: NonNullable<PodSpec["volumes"]>;
  readonly volumeMounts: NonNullable<Container["volumeMounts"]>;
  /** How long a Job and its pods stay when they have ended. */
  readonly ttlSeconds: number;
}

export interface WorkerJobPlan {
  readonly resource: CompressionJob;
  readonly step: JobStep;
  readonly target: Target;
  readonly parallelism: number;
  readonly deadlineSeconds: number;
}

/** A worker that stops on SIGTERM tells why within this time. */
export const terminationGraceSeconds = 10;
const retries = 2;
const killedExit = 137;
const tokenSeconds = 3600;
const uid = 10_001;
const workDirectory = "/work";
const tokenDirectory = "/var/run/secrets/modeloptimization.dev/token";

/** The child Job that does a step of a job's work. */
export function workerJobManifest(plan: WorkerJobPlan, settings: WorkerSettings): KubernetesJob {
  const { resource, step, parallelism } = plan;
  const { name, uid: ownerUid } = resource.metadata;
  const id = resolveJobId(resource);
  const queue = queueName(resource);
  const selectorLabels = {
    [resourceLabels.jobId]: id,
    ...(name !== id && { [resourceLabels.job]: labelValue(name) }),
    ...(step !== "work" && { [resourceLabels.step]: step }),
  };
  return {
    metadata: {
      name: workerJobName(name, step),
      labels: { ...selectorLabels, ...(queue !== undefined && { [resourceLabels.queue]: queue }) },
      ...(step === "shard" && { annotations: { [sharesAnnotation]: String(parallelism) } }),
      ownerReferences: [
        {
          apiVersion,
          kind: compressionJobs.kind,
          name,
          uid: ownerUid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      ...(step === "optimize"
        ? {
            completionMode: "Indexed",
            completions: parallelism,
            parallelism,
            backoffLimitPerIndex: retries,
            maxFailedIndexes: 0,
          }
        : { backoffLimit: retries }),
      // Two pods of a step never hold a GPU each: a new one is made when the old one has ended.
      podReplacementPolicy: "Failed",
      podFailurePolicy: {
        rules: [
          { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          {
            action: "FailJob",
            onExitCodes: {
              containerName: workerContainer,
              operator: "In",
              values: [workerExit.failed, killedExit],
            },
          },
        ],
      },
      // Jobs of earlier steps say which are done: they stay until the whole is recorded.
      ...(isLastStep(step) && { ttlSecondsAfterFinished: settings.ttlSeconds }),
      ...(queue !== undefined && { suspend: true }),
      // Four labels less on every pod than what the Job controller would select by; a job's id is as unique.
      manualSelector: true,
      selector: { matchLabels: selectorLabels },
      template: { metadata: { labels: selectorLabels }, spec: podSpec(plan, settings) },
    },
  };
}

/** Queue of Kueue that admits the job's Jobs. */
export function queueName({ metadata }: CompressionJob): string | undefined {
  return metadata.labels?.[resourceLabels.queue];
}

function isLastStep(step: JobStep): boolean {
  return step === "work" || step === "assemble";
}

function podSpec(
  { target, deadlineSeconds, ...plan }: WorkerJobPlan,
  settings: WorkerSettings,
): PodSpec {
  const { nodeSelector, tolerations, runtimeClassName, priorityClassName, scratch } = target;
  return {
    restartPolicy: "Never",
    // Of the pod, not of the Job: only work counts, not the time without a node.
    activeDeadlineSeconds: deadlineSeconds,
    terminationGracePeriodSeconds: terminationGraceSeconds,
    serviceAccountName: settings.serviceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: uid,
      fsGroup: uid,
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...(nodeSelector && { nodeSelector }),
    ...(tolerations && { tolerations: tolerations.map(toleration) }),
    ...(runtimeClassName !== undefined && { runtimeClassName }),
    ...(priorityClassName !== undefined && { priorityClassName }),
    containers: [container({ ...plan, target }, settings)],
    volumes: [
      { name: "work", emptyDir: scratch === undefined ? {} : { sizeLimit: scratch } },
      {
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
      },
      ...settings.volumes,
    ],
  };
}

function toleration({
  key,
  operator,
  value,
  effect,
}: NonNullable<Target["tolerations"]>[number]): Toleration {
  return {
    ...(key !== undefined && { key }),
    ...(operator !== undefined && { operator }),
    ...(value !== undefined && { value }),
    ...(effect !== undefined && { effect }),
  };
}

function container(
  { resource, target }: Pick<WorkerJobPlan, "resource" | "target">,
  settings: WorkerSettings,
): Container {
  const { gpu, resources: { cpu, memory } = {} } = target;
  const variables = {
    MOS_SERVICE_URL: settings.serviceUrl,
    MOS_JOB_ID: resolveJobId(resource),
    MOS_JOB_TOKEN_FILE: `${tokenDirectory}/token`,
    MOS_WORK_DIR: workDirectory,
    TMPDIR: workDirectory,
  };
  return {
    name: workerContainer,
    image: target.image ?? settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    env: Object.entries(variables).map(([name, value]) => ({ name, value })),
    resources: {
      requests: { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }) },
      limits: {
        ...(memory !== undefined && { memory }),
        ...(gpu && { [gpu.resource]: String(gpu.count) }),
      },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    terminationMessagePolicy: "File",
    volumeMounts: [
      { name: "work", mountPath: workDirectory },
      { name: "token", mountPath: tokenDirectory, readOnly: true },
      ...settings.volumeMounts,
    ],
  };
}
