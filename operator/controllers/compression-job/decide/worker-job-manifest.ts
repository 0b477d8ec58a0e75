import { apiVersion } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import {
  resourceLabels,
  sharesAnnotation,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { type JobStep, labelValue, workerJobName } from "../../../../src/resources/job-identity.ts";
import type { WorkerSettings } from "../observe/job-settings.ts";
import { definedFields } from "./defined-fields.ts";
import { findQueue, type Queue } from "./find-queue.ts";
import { completionFields } from "./parallelism.ts";
import { podFailurePolicy } from "./pod-failure-policy.ts";
import { workerPodSpec, type WorkerPodPlan } from "./worker-pod-spec.ts";

type Metadata = NonNullable<KubernetesJob["metadata"]>;

interface WorkerJobPlan extends WorkerPodPlan {
  readonly resource: CompressionJob;
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
    ownerReferences: [controllerReference(resource)],
  };
}

function controllerReference({ metadata }: CompressionJob) {
  const { name, uid } = metadata;
  const { kind } = compressionJobs;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}
