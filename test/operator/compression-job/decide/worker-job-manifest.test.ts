import assert from "node:assert/strict";
import test from "node:test";
import { workerJobManifest } from "../../../../operator/controllers/compression-job/decide/worker-job-manifest.ts";
import { mergePods } from "../../../../operator/target-pods.ts";
import {
  type ConfiguredTarget,
  configuredTarget,
} from "../../../../src/contract/custom-resources/target-pod.ts";
import { resolveJobId } from "../../../../src/resources/job-identity.ts";
import { clusterMissing } from "../../../support/cluster/cluster-missing.ts";
import { fullTarget } from "../../../support/full-target.ts";
import { createTestNamespace } from "../../../support/cluster/shared-cluster.ts";
import { gpuTarget, jobSettings, makeJob } from "../make-job.ts";

const skip = clusterMissing;
const queueLabel = "kueue.x-k8s.io/queue-name";
const priorityLabel = "kueue.x-k8s.io/priority-class";

const models = {
  volumes: [{ name: "models", persistentVolumeClaim: { claimName: "models" } }],
  volumeMounts: [{ name: "models", mountPath: "/models", readOnly: true }],
};

const target: ConfiguredTarget = {
  ...gpuTarget,
  image: "worker.test/worker-cuda:1",
  resources: { cpu: "500m", memory: "4Gi" },
  scratch: "20Gi",
  nodeSelector: { pool: "gpu" },
  tolerations: [{ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }],
  runtimeClassName: "nvidia",
  priorityClassName: "batch",
  pod: models,
};

const settings = { ...jobSettings, serviceAccount: "default" };

const resource = makeJob({ spec: { target: "gpu" } });
const jobId = resolveJobId(resource);

function buildPod(
  plan: Partial<Parameters<typeof workerJobManifest>[0]> = {},
  others: Partial<Parameters<typeof workerJobManifest>[1]> = {},
) {
  const { spec } = workerJobManifest(
    { resource, jobId, step: "work", target, parallelism: 1, deadlineSeconds: 600, ...plan },
    { ...settings, ...others },
  );
  const pod = spec?.template.spec;
  assert.ok(spec !== undefined && pod !== undefined);
  const [container] = pod.containers;
  assert.ok(container !== undefined);
  return { spec, pod, container };
}

test("a worker is not the first process of its container, which lacks signals' defaults", () => {
  assert.equal(buildPod().pod.shareProcessNamespace, true);
});

test("the cluster chooses a worker's user where the installation wants that", () => {
  assert.equal(buildPod().pod.securityContext?.runAsUser, 10_001);
  const { securityContext } = buildPod({}, { hasOwnUser: false }).pod;
  assert.deepEqual(securityContext, {
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
});

test("a worker gets what its target asks for", () => {
  const { pod, container } = buildPod();
  assert.equal(container.image, "worker.test/worker-cuda:1");
  assert.deepEqual(container.resources, {
    requests: { cpu: "500m", memory: "4Gi", "ephemeral-storage": "20Gi" },
    limits: { memory: "4Gi", "nvidia.com/gpu": "2" },
  });
  assert.deepEqual(pod.volumes?.[0], { name: "work", emptyDir: { sizeLimit: "20Gi" } });
  assert.deepEqual(pod.nodeSelector, { pool: "gpu" });
  assert.deepEqual(pod.tolerations, [
    { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" },
  ]);
  assert.equal(pod.runtimeClassName, "nvidia");
  assert.equal(pod.priorityClassName, "batch");
  assert.equal(pod.activeDeadlineSeconds, 600);
});

test("a worker whose target says nothing requests a little of everything", () => {
  const { name, description, executionProvider, operators, recipe, presets } = gpuTarget;
  const bare = { name, description, executionProvider, operators, recipe, presets };
  const { container } = buildPod({ target: bare });
  assert.deepEqual(container.resources, {
    requests: { cpu: "100m", memory: "256Mi", "ephemeral-storage": "256Mi" },
    limits: {},
  });
});

test("a worker requests what its step takes, where its target says nothing", () => {
  const { resources: _, scratch: __, ...open } = target;
  const costs = { peakMemoryBytes: 3e9, diskBytes: 5e9 };
  const requestsOf = (plan: Parameters<typeof buildPod>[0]) => {
    const { requests = {}, limits = {} } = buildPod(plan).container.resources ?? {};
    return [requests["memory"], requests["ephemeral-storage"], limits["memory"]];
  };
  assert.deepEqual(requestsOf({ target: open, costs }), ["2862Mi", "4769Mi", undefined]);
  const little = { peakMemoryBytes: 1e6, diskBytes: 1e6 };
  assert.deepEqual(requestsOf({ target: open, costs: little }), ["256Mi", "256Mi", undefined]);
  assert.deepEqual(requestsOf({ target, costs }), ["4Gi", "20Gi", "4Gi"]);
  const limits = { memory: "2.5Gi", ephemeralStorage: "4G" };
  const limited = { ...open, resources: { limits } };
  assert.deepEqual(requestsOf({ target: limited, costs }), ["2.5Gi", "4G", "2.5Gi"]);
});

test("a worker requests no more than the limits of its target, however low", () => {
  const { resources: _, scratch: __, ...open } = target;
  const limits = { cpu: "0.05", memory: "200Mi", ephemeralStorage: "0.1Gi" };
  const { container } = buildPod({ target: { ...open, resources: { limits } } });
  const requested = { cpu: "0.05", memory: "200Mi", "ephemeral-storage": "0.1Gi" };
  assert.deepEqual(container.resources?.requests, requested);
});

test("pods get every field of their target, beside what the operator sets", () => {
  const full = configuredTarget.parse(fullTarget);
  assert.ok(full.pod !== undefined);
  const { affinity, topologySpreadConstraints, imagePullSecrets, ...fields } = full.pod;
  const { spec, pod, container } = buildPod({
    target: { ...full, pod: mergePods(models, full.pod) },
  });
  assert.deepEqual(spec.template.metadata, {
    labels: { ...fields.labels, ...spec.selector?.matchLabels },
    annotations: fields.annotations,
  });
  assert.deepEqual(
    [pod.affinity, pod.topologySpreadConstraints, pod.imagePullSecrets],
    [affinity, topologySpreadConstraints, imagePullSecrets],
  );
  assert.deepEqual(pod.resourceClaims, [{ name: "gpu", resourceClaimTemplateName: "one-gpu" }]);
  assert.deepEqual(container.resources, {
    requests: { cpu: "500m", memory: "1Gi", "ephemeral-storage": "2Gi" },
    limits: { cpu: "2", memory: "2Gi", "ephemeral-storage": "4Gi", "nvidia.com/gpu": "1" },
    claims: [{ name: "gpu", request: "gpu" }],
  });
  const own = buildPod();
  assert.deepEqual(container.env, [...(fields.env ?? []), ...(own.container.env ?? [])]);
  assert.deepEqual(pod.volumes, [...(own.pod.volumes ?? []), ...(fields.volumes ?? [])]);
  assert.deepEqual(container.volumeMounts?.slice(3), fields.volumeMounts);
});

test("an API server takes pods with every field of a target", { skip }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  const { pod, spec } = buildPod({ target: configuredTarget.parse(fullTarget) });
  const manifest = { ...spec.template, apiVersion: "v1", kind: "Pod", spec: pod };
  const output = await cluster.kubectl(
    ["create", "-n", namespace, "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"],
    JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, name: "full" } }),
  );
  const taken = JSON.parse(output) as { spec: typeof pod };
  assert.deepEqual(taken.spec.affinity, pod.affinity);
  assert.deepEqual(taken.spec.resourceClaims, pod.resourceClaims);
  const [worker] = taken.spec.containers;
  assert.deepEqual(worker?.resources?.limits, pod.containers[0]?.resources?.limits);
  assert.deepEqual(worker?.resources?.claims, pod.containers[0]?.resources?.claims);
  assert.deepEqual(
    taken.spec.volumes?.map(({ name }) => name).slice(0, pod.volumes?.length),
    pod.volumes?.map(({ name }) => name),
  );
});

test("a worker learns where the service is, which job it works for and who it is", () => {
  const { pod, container } = buildPod();
  const environment = Object.fromEntries(
    container.env?.map(({ name, value }) => [name, value]) ?? [],
  );
  assert.equal(environment["MOS_SERVICE_URL"], "http://service.test:8080");
  assert.equal(environment["MOS_JOB_ID"], jobId);
  const mounts = new Map(container.volumeMounts?.map(({ name, mountPath }) => [name, mountPath]));
  assert.equal(environment["MOS_JOB_TOKEN_FILE"], `${mounts.get("token")}/token`);
  assert.equal(environment["MOS_WORK_DIR"], mounts.get("work"));
  assert.equal(mounts.get("models"), "/models");
  const token = pod.volumes?.find(({ name }) => name === "token")?.projected?.sources?.[0]
    ?.serviceAccountToken;
  assert.equal(token?.audience, "model-optimization-worker");
  assert.equal(pod.automountServiceAccountToken, false);
});

test("shares are worked on at once, and the first that fails for good ends the others", () => {
  const { spec } = buildPod({ step: "optimize", parallelism: 8 });
  assert.deepEqual([spec.completionMode, spec.completions, spec.parallelism], ["Indexed", 8, 8]);
  assert.deepEqual([spec.backoffLimitPerIndex, spec.maxFailedIndexes], [14, 0]);
});

test("a worker Job waits in its target's queue, or in the one that the resource names", () => {
  const queued = { ...target, queue: { name: "gpus", priorityClass: "low" } };
  const queueLabels = (labels: Record<string, string>, plan = queued) => {
    const { metadata, spec } = workerJobManifest(
      {
        resource: makeJob({ spec: { target: "gpu" }, metadata: { labels } }),
        jobId,
        step: "work",
        target: plan,
        parallelism: 1,
        deadlineSeconds: 600,
      },
      settings,
    );
    assert.equal(spec?.suspend, true);
    return [queueLabel, priorityLabel].map((label) => metadata?.labels?.[label]);
  };
  assert.deepEqual(queueLabels({}), ["gpus", "low"]);
  assert.deepEqual(queueLabels({ [priorityLabel]: "high" }), ["gpus", "high"]);
  assert.deepEqual(queueLabels({ [queueLabel]: "team", [priorityLabel]: "high" }), [
    "team",
    "high",
  ]);
  assert.equal(buildPod().spec.suspend, undefined);
});

test("the pods of each step are selected by their own labels", () => {
  const selectors = (["work", "shard", "optimize", "assemble"] as const).map((step) => {
    const { spec } = buildPod({ step, parallelism: 3 });
    assert.deepEqual(spec.selector?.matchLabels, spec.template.metadata?.labels);
    return JSON.stringify(spec.selector);
  });
  assert.equal(new Set(selectors).size, 4);
});

test("a namespace that restricts its pods takes every step's", { skip }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  await cluster.kubectl([
    "label",
    "namespace",
    namespace,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  for (const step of ["work", "shard", "optimize", "assemble"] as const) {
    const { runtimeClassName: _, priorityClassName: __, ...plain } = target;
    const { pod } = buildPod({ step, target: plain });
    const podManifest = { apiVersion: "v1", kind: "Pod", metadata: { name: step }, spec: pod };
    await cluster.kubectl(
      ["create", "-n", namespace, "--dry-run=server", "-f", "-"],
      JSON.stringify(podManifest),
    );
    const job = workerJobManifest(
      { resource, jobId, step, target, parallelism: 3, deadlineSeconds: 600 },
      settings,
    );
    const jobManifest = { apiVersion: "batch/v1", kind: "Job", ...job };
    const output = await cluster.kubectl(
      ["create", "-n", namespace, "--dry-run=server", "-f", "-"],
      JSON.stringify(jobManifest),
    );
    assert.match(output, /created/);
  }
});
