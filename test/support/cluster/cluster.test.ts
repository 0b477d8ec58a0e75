import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterMissing } from "./cluster-missing.ts";
import { startControlPlane } from "./control-plane.ts";
import { startKwok } from "./kwok.ts";
import { podEndStage } from "./pod-end-stage.ts";
import { createTestNamespace } from "./shared-cluster.ts";

test("a control plane comes up and makes pods for a Job", { skip: clusterMissing }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  await cluster.kubectl(["create", "job", "greet", "--image=none", "-n", namespace]);
  const selector = ["-n", namespace, "-l", "job-name=greet"];
  await cluster.kubectl(["wait", "--for=create", "pod", ...selector, "--timeout=240s"]);
  const phase = await cluster.kubectl([
    "get",
    "pod",
    ...selector,
    "-o",
    "jsonpath={.items[*].status.phase}",
  ]);
  assert.equal(phase, "Pending");
});

test(
  "Jobs run on simulated nodes, and pods end as annotated",
  { skip: clusterMissing },
  async () => {
    await using controlPlane = await startControlPlane();
    const endStages = [
      podEndStage(),
      podEndStage({
        labels: { "job-name": "fails" },
        exitCode: 11,
        reason: "Broken",
        message: "told",
      }),
    ];
    await using _kwok = await startKwok(controlPlane, { nodes: 3, endStages });
    for (const [name, condition] of [
      ["works", "Complete"],
      ["fails", "Failed"],
    ] as const) {
      await controlPlane.kubectl(["create", "-f", "-"], JSON.stringify(gpuJob(name)));
      await controlPlane.kubectl([
        "wait",
        "job",
        name,
        `--for=condition=${condition}`,
        "--timeout=240s",
      ]);
    }
    const [pod] = JSON.parse(
      await controlPlane.kubectl(["get", "pod", "-l", "job-name=fails", "-o", "json"]),
    ).items;
    const { exitCode, reason, message } = pod.status.containerStatuses[0].state.terminated;
    assert.deepEqual(
      { exitCode, reason, message },
      { exitCode: 11, reason: "Broken", message: "told" },
    );
  },
);

test(
  "a control plane keeps what it holds while its API server restarts",
  { skip: clusterMissing },
  async () => {
    await using controlPlane = await startControlPlane();
    await controlPlane.kubectl(["create", "namespace", "kept"]);
    await controlPlane.stopApiServer();
    await assert.rejects(controlPlane.kubectl(["get", "namespace", "kept"]), /refused/);
    await controlPlane.startApiServer();
    assert.match(await controlPlane.kubectl(["get", "namespace", "kept"]), /Active/);
  },
);

test(
  "what kubectl refuses without reading its input it gives a reason for",
  { skip: clusterMissing },
  async () => {
    const { cluster } = await createTestNamespace();
    const moreThanAPipeHolds = " ".repeat(1024 ** 2);
    await assert.rejects(cluster.kubectl(["create", "--no-such-flag"], moreThanAPipeHolds), {
      code: 1,
      message: /unknown flag: --no-such-flag/,
    });
  },
);

function gpuJob(name: string): object {
  const container = { name: "work", image: "none", resources: { limits: { "nvidia.com/gpu": 1 } } };
  const template = { spec: { restartPolicy: "Never", containers: [container] } };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: { backoffLimit: 0, template },
  };
}
