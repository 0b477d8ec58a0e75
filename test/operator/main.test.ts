import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { until } from "../support/until.ts";
import { observeJobs } from "./compression-job/observe-jobs.ts";
import { spawnOperator, startOperator } from "./start-operator.ts";

const skip = clusterMissing;
const nowhere = { kubeconfig: "/dev/null", namespace: "default" };

const refusals: readonly (readonly [string, Record<string, string>, RegExp])[] = [
  [
    "an invalid service URL",
    { MOS_SERVICE_URL: "model-optimization" },
    /settings are invalid[^]*MOS_SERVICE_URL/,
  ],
  [
    "pods that are not YAML",
    { MOS_WORKER_POD: "{models" },
    /MOS_WORKER_POD is "\{models" and must be YAML/,
  ],
  [
    "the path of a node for all pods",
    { MOS_WORKER_POD: '{"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}' },
    /MOS_WORKER_POD\.volumes\[0\]\.hostPath is not known/,
  ],
  [
    "a time to live that is not a number",
    { MOS_JOB_TTL_SECONDS: "1h" },
    /MOS_JOB_TTL_SECONDS is "1h" and must be a whole number/,
  ],
  [
    "a targets file that is not there",
    { MOS_TARGETS_FILE: "/nowhere.yaml" },
    /Targets file "\/nowhere.yaml" cannot be used/,
  ],
];

for (const [what, environment, message] of refusals) {
  test(`the operator does not start with ${what}, and reports it`, async () => {
    await using operator = spawnOperator({ ...nowhere, environment });
    assert.equal(await operator.ended, 1);
    const output = operator.log.join("\n");
    assert.match(output, message);
    assert.doesNotMatch(output, /\n\s+at /);
  });
}

test("the operator names what is wrong with a target", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "targets-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "targets.yaml");
  await writeFile(file, "targets: [{ name: GPU }]");
  await using operator = spawnOperator({ ...nowhere, environment: { MOS_TARGETS_FILE: file } });
  assert.equal(await operator.ended, 1);
  assert.match(operator.log.join("\n"), /targets\[0\].name/);
});

const notPods: readonly (readonly [string, object, RegExp])[] = [
  ["a field that pods do not have", { affinity: { zone: "a" } }, /unknown field .*affinity\.zone/],
  ["a label's value with a space", { labels: { team: "a b" } }, /template\.labels: Invalid value/],
  [
    "a variable of no source",
    { env: [{ name: "A", valueFrom: {} }] },
    /env\[0\]\.valueFrom: Invalid value/,
  ],
  [
    "a volume twice",
    {
      volumes: [
        { name: "a", emptyDir: {} },
        { name: "a", emptyDir: {} },
      ],
    },
    /volumes\[3\]\.name: Duplicate value/,
  ],
  [
    "a mount of no volume",
    { volumeMounts: [{ name: "disk", mountPath: "/disk" }] },
    /volumeMounts\[2\]\.name: Not found: "disk"/,
  ],
  [
    "a claim of two sources",
    { resourceClaims: [{ name: "a", resourceClaimName: "b", resourceClaimTemplateName: "c" }] },
    /resourceClaims\[0\]: Invalid value/,
  ],
];

for (const [what, pod, message] of notPods) {
  test(`the operator does not start with ${what} in a target's pods`, { skip }, async (t) => {
    const { cluster, namespace } = await createTestNamespace();
    const folder = await mkdtemp(join(tmpdir(), "targets-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, "targets.yaml");
    const targets = [...builtinTargets, { ...builtinTargets[0], name: "odd", pod }];
    await writeFile(file, JSON.stringify({ targets }));
    const { kubeconfig } = cluster;
    const environment = { MOS_TARGETS_FILE: file };
    await using operator = spawnOperator({ kubeconfig, namespace, environment });
    assert.equal(await operator.ended, 1);
    const output = operator.log.join("\n");
    assert.match(output, /^The API server refuses worker Jobs of these targets\nodd: /m);
    assert.match(output, message);
    assert.doesNotMatch(output, /^cpu: /m);
  });
}

test("jobs wait where a policy refuses their Jobs, and the operator works", { skip }, async (t) => {
  const { cluster, namespace } = await createTestNamespace();
  const { kubeconfig } = cluster;
  const policyName = `no-jobs-${namespace}`;
  const kinds = { apiGroups: ["batch"], apiVersions: ["v1"], resources: ["jobs"] };
  const matchConstraints = { resourceRules: [{ ...kinds, operations: ["CREATE"] }] };
  const matchLabels = { "kubernetes.io/metadata.name": namespace };
  const specs = {
    ValidatingAdmissionPolicy: { matchConstraints, validations: [{ expression: "false" }] },
    ValidatingAdmissionPolicyBinding: {
      policyName,
      validationActions: ["Deny"],
      matchResources: { namespaceSelector: { matchLabels } },
    },
  };
  const items = Object.entries(specs).map(([kind, spec]) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name: policyName },
    spec,
  }));
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["create", "-f", "-"], list);
  t.after(() => cluster.kubectl(["delete", "-f", "-"], list));
  await using jobs = await observeJobs(cluster, namespace);
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "a", image: "a" }] } };
  const probe = { metadata: { name: "probe" }, spec: { suspend: true, template } };
  await until("the policy refuses Jobs", () =>
    jobs.client.create(resources.jobs, probe, { dryRun: true }).then(
      () => false,
      () => true,
    ),
  );
  await using _operator = await startOperator({ kubeconfig, namespace });
  await jobs.create({ name: "refused" });
  const { status } = await jobs.until("refused", ({ status: { statusReason } }) =>
    Boolean(statusReason),
  );
  assert.deepEqual([status.status, status.statusReason], ["Pending", "pod_refused"]);
  assert.match(status.statusMessage ?? "", /ValidatingAdmissionPolicy 'no-jobs-/);
});

test("an operator that is asked to stop hands the leadership on", { skip }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  const { kubeconfig } = cluster;
  await using first = await startOperator({ kubeconfig, namespace });
  await using second = spawnOperator({ kubeconfig, namespace });
  await second.logged("waiting for the leadership");
  assert.equal(await first.end("SIGTERM"), 0);
  await second.logged("Leading");
  assert.equal(await second.end("SIGTERM"), 0);
});
