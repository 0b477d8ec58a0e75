import assert from "node:assert/strict";
import { test } from "node:test";
import { resources } from "../../src/kubernetes/resources.ts";
import { connect } from "../kubernetes/connect-test-cluster.ts";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { until } from "../support/until.ts";
import { render } from "./helm.ts";

const skip = clusterMissing || helmMissing;
const replicas = 2;
const existingSecret = "given";
const service = { replicas, postgres: { existingSecret }, s3: { existingSecret } };
const needed = ["Deployment", "PodDisruptionBudget", "ServiceAccount"];

test("a node is drained though no replica on it is ready", { skip }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  const client = await connect({ kubeconfig: cluster.kubeconfig }, { namespace });
  const rendered = await render({ namespace, values: { operator: { replicas }, service } });
  const items = rendered.filter(({ kind }) => needed.includes(kind));
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["create", "-n", namespace, "-f", "-"], list);
  for (const component of ["operator", "service"]) {
    const labelSelector = `app.kubernetes.io/component=${component}`;
    const pods = await until(`the ${component} has its pods`, async () => {
      const [page] = await Array.fromAsync(client.list(resources.pods, { labelSelector }));
      return page?.items.length === replicas && page.items;
    });
    const conditions = [{ type: "Ready", status: "False" }];
    const status = { phase: "Running", conditions };
    for (const { metadata } of pods) {
      await client.patch(resources.pods, metadata.name, { status }, { subresource: "status" });
    }
    const budget = `pdb/mos-model-optimization-${component}`;
    const expected = `--for=jsonpath={.status.expectedPods}=${replicas}`;
    await cluster.kubectl(["wait", budget, expected, "-n", namespace, "--timeout=240s"]);
    const [name = ""] = pods.map(({ metadata }) => metadata.name);
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    const answer = await cluster.kubectl(
      ["create", "--raw", path, "-f", "-"],
      JSON.stringify(eviction),
    );
    assert.match(answer, /"Success"/);
  }
});
