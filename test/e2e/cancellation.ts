import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { type Installation, nodeName, patience } from "./installation.ts";
import { listActivePodNames } from "./list-pod-names.ts";
import type { Models } from "./jobs.ts";
import { workerProcesses } from "./processes.ts";
import { createStepRunner } from "./create-step-runner.ts";

/** A look at all processes of the machine takes a good part of that. */
const pollMs = 100;
/** More than a minute of work. */
const evaluation = { samples: 1024, latencyBudgetSeconds: 3600 };

/** Jobs in every status are cancelled in every way, and nothing of them is left. */
export async function testCancellation(
  group: TestContext,
  installation: Installation,
  { uploaded }: Models,
) {
  const step = createStepRunner(group, installation);
  const { client, kubectl, apply, readResourceField, untilField, cluster } = installation;
  const begin = async (name: string, target: string) => {
    await apply("CompressionJob", name, { model: uploaded, target, recipe: { evaluation } });
  };
  const setCancel = (name: string) =>
    kubectl(["patch", "cpj", name, "--type=merge", "--patch", cancelPatch]);
  const cancelOverRest = (id: string) => client.call("cancelJob", { params: { id } });
  const readJobId = (name: string) => readResourceField(`cpj/${name}`, ".status.jobId");
  const addGpus = async (count: number) => {
    const resources = { "nvidia.com/gpu": String(count) };
    const patch = JSON.stringify({ status: { capacity: resources, allocatable: resources } });
    await cluster.kubectl(["patch", "node", nodeName, "--subresource=status", "--patch", patch]);
  };
  const whileRunning = async (
    t: TestContext,
    name: string,
    cancel: (id: string) => Promise<unknown>,
  ) => {
    await begin(name, "gpu");
    await untilField(`cpj/${name}`, ".status.status", "Optimizing");
    const id = await readJobId(name);
    assert.notDeepEqual(await workerProcesses(id), []);
    t.diagnostic(await untilCancelled(installation, id, () => cancel(id)));
  };

  await begin("no-node", "many-gpus");
  await begin("no-image", "no-image");

  await step("a running job that is cancelled over REST", (t) =>
    whileRunning(t, "posted", cancelOverRest),
  );

  await step("a running job whose spec says cancel", async (t) => {
    await whileRunning(t, "patched", () => setCancel("patched"));
    assert.equal(await readResourceField("cpj/patched", ".status.status"), "Cancelled");
  });

  await step("a running job whose resource is deleted, and whose history stays", async (t) => {
    await whileRunning(t, "deleted", () => kubectl(["delete", "cpj", "deleted", "--wait=false"]));
    await kubectl(["wait", "cpj/deleted", "--for=delete", patience]);
  });

  await step("a job that no node can take, which does not begin when GPUs are added", async (t) => {
    await untilField("cpj/no-node", ".status.statusReason", "unschedulable");
    assert.match(
      await readResourceField("cpj/no-node", ".status.statusMessage"),
      /not enough nvidia\.com\/gpu free \(64 needed\)/,
    );
    const id = await readJobId("no-node");
    t.diagnostic(await untilCancelled(installation, id, () => setCancel("no-node")));
    await addGpus(64);
    await apply("CompressionJob", "another", {
      model: uploaded,
      target: "many-gpus",
      dryRun: true,
    });
    await untilField("cpj/another", ".status.status", "Completed");
    await addGpus(4);
    assert.equal(await readResourceField("cpj/no-node", ".status.status"), "Cancelled");
    assert.deepEqual(await listActivePodNames(installation, id), []);
  });

  await step("a job whose image cannot be pulled", async (t) => {
    await untilField("cpj/no-image", ".status.statusReason", "image_unavailable");
    t.diagnostic(
      await untilCancelled(installation, await readJobId("no-image"), () => setCancel("no-image")),
    );
  });

  await step("a job that has only just been submitted", async (t) => {
    const body = { model: uploaded, target: "gpu", recipe: { evaluation } };
    const { id } = await client.call("startCompression", { body });
    t.diagnostic(await untilCancelled(installation, id, () => cancelOverRest(id)));
  });
}

const cancelPatch = JSON.stringify({ spec: { cancel: true } });

/**
 * Requests a job's cancellation, and asserts that it is Cancelled only when nothing of it runs.
 * @returns how long that took
 */
export async function untilCancelled(
  installation: Installation,
  id: string,
  ask: () => Promise<unknown>,
): Promise<string> {
  const begin = performance.now();
  await ask();
  const askedMs = performance.now() - begin;
  let ranMs = 0;
  let isCancelling = false;
  for (;;) {
    const { status } = await installation.client.call("getJob", { params: { id } });
    const processes = await workerProcesses(id);
    if (processes.length > 0) ranMs = performance.now() - begin;
    if (status === "Cancelled") {
      assert.deepEqual(processes, []);
      assert.deepEqual(await listActivePodNames(installation, id), []);
      const selector = `${resourceLabels.jobId}=${id}`;
      await installation.kubectl(["wait", "pods", "-l", selector, "--for=delete", patience]);
      const times = { asked: askedMs, "last process": ranMs, Cancelled: performance.now() - begin };
      return Object.entries(times)
        .map(([what, ms]) => `${what} after ${(ms / 1000).toFixed(1)} s`)
        .join(", ");
    }
    // A change by kubectl reaches the service's records a moment later.
    isCancelling ||= status === "Cancelling";
    assert.ok(!isCancelling || status === "Cancelling", status);
    await delay(pollMs);
  }
}
