import {
  type CompressionJob,
  type CompressionJobSpec,
  compressionJobSpec,
} from "../../../src/contract/custom-resources/compression-job.ts";
import { builtinTargets, type Target } from "../../../src/contract/jobs/target.ts";
import type { WorkerJob } from "../../../operator/controllers/compression-job/observe/worker-job.ts";
import type { StepWarning } from "../../../operator/controllers/compression-job/observe/step-warning.ts";
import type { WorkerPod } from "../../../operator/controllers/compression-job/observe/worker-pod.ts";
import type { JobSettings } from "../../../operator/controllers/compression-job/observe/job-settings.ts";
import type { ObservedState } from "../../../operator/controllers/compression-job/observe/observed-state.ts";
import { workerJobName, resolveJobId } from "../../../src/resources/job-identity.ts";

export const start = Date.UTC(2026, 2, 1);

export const jobSettings: JobSettings = {
  serviceUrl: "http://service.test:8080",
  hasOwnUser: true,
  image: "worker.test/worker:1",
  serviceAccount: "worker",
  ttlSeconds: 3600,
  deadlineSeconds: 7200,
  podStartSeconds: 600,
};

export const gpuTarget: Target = {
  name: "gpu",
  description: "Two GPUs.",
  executionProvider: "cuda",
  operators: "contrib",
  recipe: { scheme: "int8-weight" },
  presets: {},
  gpu: { resource: "nvidia.com/gpu", count: 2 },
};

export const targets: readonly Target[] = [...builtinTargets, gpuTarget];

interface JobFields {
  readonly spec?: Partial<CompressionJobSpec>;
  readonly metadata?: Partial<CompressionJob["metadata"]>;
  readonly status?: Partial<CompressionJob["status"]>;
}

/** A CompressionJob as the API server has it before anybody has written its status. */
export function makeJob({ spec, metadata, status }: JobFields = {}): CompressionJob {
  return {
    apiVersion: "modeloptimization.dev/v1",
    kind: "CompressionJob",
    metadata: {
      name: "voices",
      namespace: "models",
      uid: "0f2b9f6e-8f4e-4b0c-9a44-6f0d1f8d6a01",
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: new Date(start).toISOString(),
      ...metadata,
    },
    spec: compressionJobSpec.parse({
      model: { source: "https://models.test/voices.onnx" },
      target: "cpu",
      ...spec,
    }),
    status: { status: "Pending", ...status },
  };
}

export function makeChild(resource: CompressionJob, fields: Partial<WorkerJob> = {}): WorkerJob {
  const { name, uid } = resource.metadata;
  const { step = "work" } = fields;
  return {
    name: workerJobName(name, step),
    uid: `${name}-${step}-uid`,
    controller: { kind: "CompressionJob", name, uid },
    serviceAccount: jobSettings.serviceAccount,
    step,
    parallelism: 1,
    queue: undefined,
    deleting: false,
    suspended: false,
    ending: false,
    createdAt: start,
    startedAt: start,
    syncRequestedAt: undefined,
    end: undefined,
    ...fields,
  };
}

export function makePod(job: WorkerJob, fields: Partial<WorkerPod> = {}): WorkerPod {
  return {
    name: `${job.name}-abcde`,
    uid: `${job.uid}-pod`,
    workerJobUid: job.uid,
    node: "node-1",
    createdAt: start,
    startedAt: start,
    phase: "Running",
    reason: "",
    message: "",
    disruption: undefined,
    disruptedAt: undefined,
    index: 0,
    deletionDeadline: undefined,
    unscheduled: undefined,
    waiting: undefined,
    failingSince: undefined,
    runningSince: undefined,
    termination: undefined,
    ...fields,
  };
}

/** What the cluster warns of at the moment. */
export function makeWarning(message: string): StepWarning {
  return { message, from: start, until: start + 86_400_000 };
}

export function makeObservedState(fields: Partial<ObservedState> = {}): ObservedState {
  const { resource = makeJob() } = fields;
  return {
    now: start + 60_000,
    resource,
    jobId: resolveJobId(resource),
    workerJobs: [],
    pods: [],
    targets,
    settings: jobSettings,
    stepWarning: undefined,
    ...fields,
  };
}
