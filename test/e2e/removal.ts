import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { chartFolder, helm } from "../charts/helm.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { type Installation, namespace, patience, release } from "./installation.ts";
import type { Models } from "./jobs.ts";
import { listActivePodNames } from "./list-pod-names.ts";

/** More than a minute of work. */
const recipe = { evaluation: { samples: 1024, latencyBudgetSeconds: 3600 } };

/** An installation that is removed in mid-job leaves nothing behind. */
export async function testRemoval(
  group: TestContext,
  installation: Installation,
  { mounted }: Models,
): Promise<void> {
  const step = createStepRunner(group, installation);
  const { cluster, kubectl, apply, readResourceField, untilField, untilReady } = installation;
  const begin = async (name: string) => {
    await apply("CompressionJob", name, { model: mounted, target: "gpu", recipe });
    await untilField(`cpj/${name}`, ".status.status", "Optimizing");
    return readResourceField(`cpj/${name}`, ".status.jobId");
  };

  await step("a release that is uninstalled stops its workers", async () => {
    const id = await begin("running");
    const flags = [`--namespace=${namespace}`];
    await helm(["uninstall", release, "--wait", ...flags], cluster.kubeconfig);
    assert.deepEqual(await listActivePodNames(installation, id), []);
    assert.match(await readResourceField("cpj/running", ".metadata.finalizers"), /^(\[\])?$/);
    await helm(
      ["install", release, chartFolder, ...flags, ...installation.valueFlags],
      cluster.kubeconfig,
    );
    await untilReady();
    const selector = `${resourceLabels.jobId}=${id}`;
    await kubectl(["wait", "pods", "-l", selector, "--for=create", patience]);
    await kubectl(["delete", "cpj/running", patience]);
  });

  await step("a namespace that is deleted goes", async () => {
    await begin("left");
    await kubectl(["delete", "namespace", namespace, patience]);
  });
}
