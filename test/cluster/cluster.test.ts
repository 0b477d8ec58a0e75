import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterMissing } from "./cluster-missing.ts";
import { clusterNamespace } from "./shared-cluster.ts";

test("a control plane comes up and makes pods for a Job", { skip: clusterMissing }, async () => {
  const { cluster, namespace } = await clusterNamespace();
  await cluster.kubectl(["create", "job", "greet", "--image=none", "-n", namespace]);
  const selector = ["-n", namespace, "-l", "job-name=greet"];
  await cluster.kubectl(["wait", "--for=create", "pod", ...selector, "--timeout=60s"]);
  const phase = await cluster.kubectl(["get", "pod", ...selector, "-o", "jsonpath={.items[*].status.phase}"]);
  assert.equal(phase, "Pending");
});
