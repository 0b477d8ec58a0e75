import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import {
  batches as batchType,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import { connectTestCluster, type TestClient } from "../../kubernetes/connect-test-cluster.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { until } from "../../support/until.ts";
import { makeSpec } from "./make-batch.ts";
import { runBatches, untilSeen } from "./run-batches.ts";

const skip = clusterMissing;

test("jobs that a policy denies fail, and the others are created", { skip }, async (t) => {
  const { cluster, client } = await connectTestCluster();
  const spec = makeSpec({ models: 1, targets: ["gpu", "cpu"] });
  await forbidTarget(t, { cluster, client, target: "gpu" });
  await using operator = await runBatches(client);
  await client.create(batchType, { metadata: { name: "denied" }, spec });
  const status = await untilSeen(operator.batches, ([one]) =>
    one?.status?.marks === "fm" ? one.status : undefined,
  );
  const [failure] = status.failures ?? [];
  assert.equal(failure?.reason, "resource_invalid");
  assert.match(failure.message, /AdmissionPolicy .* denied request: not on gpu$/);
});

interface ForbiddenTarget extends Pick<TestClient, "cluster" | "client"> {
  readonly target: string;
}

/** Returns once a policy denies CompressionJobs for the target in the client's namespace. */
async function forbidTarget(t: TestContext, { cluster, client, target }: ForbiddenTarget) {
  const { namespace } = client;
  const apiVersion = "admissionregistration.k8s.io/v1";
  const rule = {
    apiGroups: ["modeloptimization.dev"],
    apiVersions: ["v1"],
    operations: ["CREATE"],
    resources: ["compressionjobs"],
  };
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  const expression = `object.spec.target != '${target}'`;
  const items = [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: namespace },
      spec: {
        matchConstraints: { resourceRules: [rule], namespaceSelector },
        validations: [{ expression, message: `not on ${target}`, reason: "Forbidden" }],
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name: namespace },
      spec: { policyName: namespace, validationActions: ["Deny"] },
    },
  ];
  const folder = await mkdtemp(join(tmpdir(), "policy-"));
  const file = join(folder, "policy.json");
  await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await cluster.kubectl(["create", "-f", file]);
  t.after(async () => {
    await cluster.kubectl(["delete", "-f", file, "--wait=false"]);
    await rm(folder, { recursive: true });
  });
  const { kind, dryRun, cancel, suspend, models } = makeSpec({ models: 1 });
  const [model] = models;
  assert.ok(model);
  const probe = {
    metadata: { name: "probe" },
    spec: { kind, model, target, dryRun, cancel, suspend },
  };
  await until("the policy is in force", () =>
    client.create(compressionJobType, probe, { dryRun: true }).then(
      () => false,
      () => true,
    ),
  );
}
