import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { untilCancelled } from "./cancellation.ts";
import { type Installation, patience } from "./installation.ts";
import { listPodNames } from "./list-pod-names.ts";
import { printedLog, readFullLog } from "./job-log.ts";
import type { Models } from "./jobs.ts";
import { pauseKubelet } from "./pause-kubelet.ts";
import { createStepRunner } from "./create-step-runner.ts";

/** Failures of workers, of the node and of our processes, and how jobs end then. */
export async function testFaults(
  group: TestContext,
  installation: Installation,
  { uploaded, mounted }: Models,
) {
  const step = createStepRunner(group, installation);
  const { client, kubectl, apply, readResourceField, untilField, untilReady, cluster } =
    installation;
  const untilFailed = async (name: string, reason: string) => {
    await untilField(`cpj/${name}`, ".status.status", "Failed");
    assert.equal(await readResourceField(`cpj/${name}`, ".status.statusReason"), reason);
    return readResourceField(`cpj/${name}`, ".status.jobId");
  };
  const replacePod = async (component: string) => {
    await kubectl(["delete", "pod", "-l", `app.kubernetes.io/component=${component}`]);
    await untilReady();
  };

  await Promise.all([
    step("a worker that needs more memory than its target has fails its job", async () => {
      await apply("CompressionJob", "hungry", { model: uploaded, target: "least-memory" });
      const id = await untilFailed("hungry", "out_of_memory");
      assert.equal((await listPodNames(installation, id)).length, 1);
    }),

    step("a result that its target has no memory to evaluate is kept", async () => {
      await apply("CompressionJob", "unmeasured", { model: uploaded, target: "little-memory" });
      const id = await untilFailed("unmeasured", "evaluation_failed");
      assert.match(await readFullLog(installation, id), /^Job job-/);
      const { artifacts } = await client.call("getJob", { params: { id } });
      assert.deepEqual(
        artifacts.map(({ name }) => name),
        ["model.onnx", "graph.json", "report.json"],
      );
    }),

    step("a file that is not a model fails its job at the first try", async () => {
      const file = join(cluster.folder, "no-model.onnx");
      await writeFile(file, "This is not a model.");
      const { source } = await client.uploadModel(file);
      await apply("CompressionJob", "no-model", { model: { source }, target: "cpu" });
      assert.equal(
        (await listPodNames(installation, await untilFailed("no-model", "model_invalid"))).length,
        1,
      );
    }),

    step("an image that is not a worker is tried three times", async () => {
      await apply("CompressionJob", "no-worker", { model: uploaded, target: "wrong-image" });
      assert.equal(
        (await listPodNames(installation, await untilFailed("no-worker", "worker_crashed"))).length,
        3,
      );
    }),

    step("a job whose pod is evicted goes on in another one", async () => {
      const recipe = { dequantize: "run", evaluation: { latencyBudgetSeconds: 5 } };
      await apply("CompressionJob", "evicted", { model: uploaded, target: "gpu", recipe });
      await untilField("cpj/evicted", ".status.status", "Optimizing");
      const id = await readResourceField("cpj/evicted", ".status.jobId");
      const [pod = ""] = await listPodNames(installation, id);
      const name = pod.replace("pod/", "");
      const namespace = await readResourceField(pod, ".metadata.namespace");
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
      await kubectl(["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
      await untilField("cpj/evicted", ".status.status", "Completed");
      assert.match(
        await readFullLog(installation, id),
        /attempt 1:[^]*\nStopped: the worker received SIGTERM\n[^]*attempt 2:/,
      );
    }),
  ]);

  await step(
    "no log line is lost or doubled when service, operator and API server are replaced",
    async () => {
      const { id } = await client.call("submitBatch", {
        body: {
          models: [uploaded, mounted],
          targets: ["cpu", "cpu-int8", "gpu"],
          parallelism: 3,
        },
      });
      const { jobs } = await client.call("getBatch", { params: { id } });
      const readers = jobs.map(async (job) => {
        const lines = await Array.fromAsync(client.followLogs(job.id));
        return lines.map(({ text }) => `${text}\n`).join("");
      });
      const followed = Promise.all(readers);
      await kubectl(["wait", "--for=create", `cpj/${id}-0000`, patience]);
      await untilField(`cpj/${id}-0000`, ".status.status", "Optimizing");
      await replacePod("service");
      await replacePod("operator");
      await cluster.restartApiServer();
      const logs = await followed;
      for (const [index, job] of jobs.entries()) {
        assert.equal((await client.call("getJob", { params: { id: job.id } })).status, "Completed");
        const pods = await listPodNames(installation, job.id);
        assert.equal(pods.length, 1);
        const printed = await printedLog(installation, pods[0] ?? "");
        assert.equal(logs[index], printed);
        assert.equal(await readFullLog(installation, job.id), printed);
      }
      await untilField(`cbatch/${id}`, ".status.status", "Completed");
    },
  );

  await step("a job on a node that does not answer is cancelled all the same", async (t) => {
    const recipe = { evaluation: { samples: 1024, latencyBudgetSeconds: 3600 } };
    await apply("CompressionJob", "cut-off", { model: uploaded, target: "gpu", recipe });
    await untilField("cpj/cut-off", ".status.status", "Optimizing");
    const id = await readResourceField("cpj/cut-off", ".status.jobId");
    {
      await using _kubelet = await pauseKubelet(cluster);
      t.diagnostic(
        await untilCancelled(installation, id, () => client.call("cancelJob", { params: { id } })),
      );
    }
    assert.match(
      await readResourceField("cpj/cut-off", ".status.statusMessage"),
      /node "node-0" did not confirm/,
    );
    await apply("CompressionJob", "after", { model: uploaded, target: "gpu", dryRun: true });
    await untilField("cpj/after", ".status.status", "Completed");
  });
}
