import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceLabels } from "../../src/contract/resource-labels.ts";
import { chartFolder, helm } from "../charts/helm.ts";
import { helmMissing, nodeMissing } from "../support/cluster/cluster-missing.ts";
import { startCluster } from "../support/cluster/start-cluster.ts";
import { realModel } from "../support/real-models.ts";
import { install, namespace, release } from "./installation.ts";
import { listActivePodNames } from "./list-pod-names.ts";

const skip = nodeMissing || helmMissing;

/** More than a minute of work. */
const recipe = { evaluation: { samples: 1024, latencyBudgetSeconds: 3600 } };

test("an installation that is removed in mid-job leaves nothing behind", { skip }, async (t) => {
  const cluster = await startCluster({ images: ["service", "worker"] });
  t.after(() => cluster.stop());
  const installation = await install(cluster, { mountedModels: [] });
  const { client, kubectl, apply, readResourceField, untilField } = installation;
  const { source } = await client.uploadModel(realModel("page-orientation"));
  const begin = async (name: string) => {
    await apply("CompressionJob", name, { model: { source }, target: "cpu", recipe });
    await untilField(`cpj/${name}`, ".status.status", "Optimizing");
    return readResourceField(`cpj/${name}`, ".status.jobId");
  };

  await t.test("a release that is uninstalled stops its workers", async () => {
    const id = await begin("running");
    const flags = [`--namespace=${namespace}`];
    await helm(["uninstall", release, "--wait", ...flags], cluster.kubeconfig);
    assert.deepEqual(await listActivePodNames(installation, id), []);
    assert.match(await readResourceField("cpj/running", ".metadata.finalizers"), /^(\[\])?$/);
    await helm(
      ["install", release, chartFolder, ...flags, ...installation.valueFlags],
      cluster.kubeconfig,
    );
    await installation.untilReady();
    const selector = `${resourceLabels.jobId}=${id}`;
    await kubectl(["wait", "pods", "-l", selector, "--for=create", "--timeout=60s"]);
    await kubectl(["delete", "cpj/running", "--timeout=60s"]);
  });

  await t.test("a namespace that is deleted goes within a minute", async () => {
    await begin("left");
    await kubectl(["delete", "namespace", namespace, "--timeout=60s"]);
  });
});
