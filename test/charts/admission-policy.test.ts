import assert from "node:assert/strict";
import { test } from "node:test";
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
];

test(
  "nobody but the operator runs pods under the workers' account",
  { skip: clusterMissing || helmMissing },
  async (t) => {
    const { cluster, namespace } = await createTestNamespace();
    const kubectl = (args: readonly string[], input?: string) =>
      cluster.kubectl(["-n", namespace, ...args], input);
    const objects = (await render({ namespace })).filter(({ kind }) => kinds.includes(kind));
    const text = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    await kubectl(["apply", "-f", "-"], text);
    t.after(() => kubectl(["delete", "--ignore-not-found", "-f", "-"], text));
    await kubectl(["create", "rolebinding", "edit", "--clusterrole=edit", "--user=mallory"]);
    const create = (user: string, kind: "Job" | "Pod", name: string, spec: object) => {
      const apiVersion = kind === "Job" ? "batch/v1" : "v1";
      const object = { apiVersion, kind, metadata: { name }, spec };
      return kubectl(["create", `--as=${user}`, "-f", "-"], JSON.stringify(object));
    };
    const denial = /Only the operator of CompressionJobs may run pods/;

    // The API server compiles a new policy a moment later.
    for (let i = 0; ; i++) {
      const made = await create("mallory", "Pod", `early-${i}`, podSpec).catch(String);
      if (denial.test(made)) break;
      await delay(200);
    }
    await assert.rejects(create("mallory", "Pod", "forged", podSpec), denial);
    await assert.rejects(create("mallory", "Job", "forged", jobSpec), denial);
    await assert.rejects(kubectl(["create", "token", worker, "--as=mallory"]), denial);
    await create("mallory", "Pod", "own", { ...podSpec, serviceAccountName: "default" });

    const operator = `system:serviceaccount:${namespace}:mos-model-optimization-operator`;
    await create(operator, "Job", "work", jobSpec);
    await kubectl(["wait", "job/work", "--for=jsonpath={.status.active}=1", "--timeout=60s"]);
  },
);
