import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { render } from "./helm.ts";

const worker = "mos-model-optimization-worker";
const podSpec = {
  serviceAccountName: worker,
  restartPolicy: "Never",
  containers: [{ name: "worker", image: "none" }],
};
const jobSpec = { template: { spec: podSpec } };
const kinds = [
  "ServiceAccount",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "Role",
  "RoleBinding",
  "Deployment",
];

const operatorDenial = /Only who may create ClusterRoles may use the account/;

/** The chart's objects that say who may run what, and somebody who may edit its namespace. */
async function install(t: TestContext) {
  const { cluster, namespace } = await createTestNamespace();
  const kubectl = (args: readonly string[], input?: string) =>
    cluster.kubectl(["-n", namespace, ...args], input);
  const items = (await render({ namespace })).filter(({ kind }) => kinds.includes(kind));
  const text = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await kubectl(["apply", "-f", "-"], text);
  t.after(() => kubectl(["delete", "--ignore-not-found", "-f", "-"], text));
  await kubectl(["create", "rolebinding", "edit", "--clusterrole=edit", "--user=mallory"]);
  return { kubectl, namespace };
}

/** The API server compiles a new policy a moment later. */
async function untilDenied(
  attempt: (name: string) => Promise<string>,
  denial: RegExp,
): Promise<void> {
  for (let i = 0; ; i++) {
    if (denial.test(await attempt(`early-${i}`).catch(String))) return;
    await delay(200);
  }
}

test(
  "nobody but the operator runs pods under the workers' account",
  { skip: clusterMissing || helmMissing },
  async (t) => {
    const { kubectl, namespace } = await install(t);
    const create = (user: string, kind: "Job" | "Pod", name: string, spec: object) => {
      const apiVersion = kind === "Job" ? "batch/v1" : "v1";
      const object = { apiVersion, kind, metadata: { name }, spec };
      return kubectl(["create", `--as=${user}`, "-f", "-"], JSON.stringify(object));
    };
    const denial = /Only the operator of CompressionJobs may run pods/;

    await untilDenied((name) => create("mallory", "Pod", name, podSpec), denial);
    await assert.rejects(create("mallory", "Pod", "forged", podSpec), denial);
    await assert.rejects(create("mallory", "Job", "forged", jobSpec), denial);
    await assert.rejects(kubectl(["create", "token", worker, "--as=mallory"]), denial);
    await create("mallory", "Pod", "own", { ...podSpec, serviceAccountName: "default" });

    const operator = `system:serviceaccount:${namespace}:mos-model-optimization-operator`;
    await create(operator, "Job", "work", jobSpec);
    await kubectl(["wait", "job/work", "--for=jsonpath={.status.active}=1", "--timeout=60s"]);
  },
);

test(
  "nobody but who installs the chart uses the operator's account",
  { skip: clusterMissing || helmMissing },
  async (t) => {
    const { kubectl } = await install(t);
    const operator = "mos-model-optimization-operator";
    const asMallory = (args: readonly string[], object?: object) =>
      kubectl(["--as=mallory", ...args], object && JSON.stringify(object));
    const create = (object: object) => asMallory(["create", "-f", "-"], object);
    const spec = { ...podSpec, serviceAccountName: operator };
    const pod = (name: string) => ({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec });
    await untilDenied((name) => create(pod(name)), operatorDenial);

    const template = {
      metadata: { labels: { app: "x" } },
      spec: { ...spec, restartPolicy: "Always" },
    };
    const selector = { matchLabels: { app: "x" } };
    const jobTemplate = { spec: { template: { spec } } };
    const forged = [
      pod("forged"),
      { apiVersion: "apps/v1", kind: "Deployment", spec: { selector, template } },
      { apiVersion: "apps/v1", kind: "ReplicaSet", spec: { selector, template } },
      { apiVersion: "batch/v1", kind: "Job", spec: { template: { spec } } },
      { apiVersion: "batch/v1", kind: "CronJob", spec: { schedule: "@daily", jobTemplate } },
      {
        apiVersion: "v1",
        kind: "Secret",
        type: "kubernetes.io/service-account-token",
        metadata: { annotations: { "kubernetes.io/service-account.name": operator } },
      },
    ];
    for (const object of forged) {
      const metadata = { name: "forged", ...("metadata" in object ? object.metadata : {}) };
      await assert.rejects(create({ ...object, metadata }), operatorDenial, object.kind);
    }
    await assert.rejects(asMallory(["create", "token", operator]), operatorDenial);
    const deployment = `deployment/${operator}`;
    await assert.rejects(asMallory(["set", "image", deployment, "operator=evil"]), operatorDenial);

    await asMallory(["rollout", "restart", deployment]);
    await create({ ...pod("own"), spec: { ...spec, serviceAccountName: "default" } });
    const selected = ["pods", "-l", "app.kubernetes.io/component=operator"];
    await kubectl(["wait", ...selected, "--for=create", "--timeout=60s"]);
    const [found = ""] = (await kubectl(["get", ...selected, "-o", "name"])).trim().split("\n");
    await assert.rejects(asMallory(["exec", found, "--", "node"]), operatorDenial);
  },
);
