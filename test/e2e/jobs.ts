import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { z } from "zod";
import {
  type CompressionJobStatus,
  compressionJobStatus,
} from "../../src/contract/custom-resources/compression-job.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import { runPython } from "../support/python.ts";
import { type Installation, patience } from "./installation.ts";
import { printedLog, streamLog, readFullLog } from "./job-log.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { testSharedCheckpoint } from "./language-models.ts";

export interface Models {
  /** Uploaded to the service. */
  readonly uploaded: { readonly source: string; readonly name: string };
  /** In a volume of the workers. */
  readonly mounted: { readonly source: string };
}

/** Jobs of every kind, from every side, to their end. */
export async function testJobs(
  group: TestContext,
  installation: Installation,
  models: Models,
): Promise<void> {
  const step = createStepRunner(group, installation);
  const { client, kubectl, apply, readResourceField, untilField, cluster } = installation;
  const { uploaded, mounted } = models;
  const waitForJobId = async (resource: string) => {
    await untilField(resource, ".status.jobId");
    return readResourceField(resource, ".status.jobId");
  };
  const finishedJob = async (id: string): Promise<Job> => {
    // The log ends with the job.
    for await (const _ of client.followLogs(id));
    return client.call("getJob", { params: { id } });
  };
  const modelHash = ({ artifacts }: Pick<Job, "artifacts">) =>
    artifacts.find(({ kind }) => kind === "model")?.sha256;
  let single: Job;
  // What is timed may be stored in another form than what is not.
  const timed = { evaluation: { latencyBudgetSeconds: 2 } };

  await step(
    "a job of kubectl runs on a GPU while its log is read, and leaves files that run",
    async () => {
      const gates = { maxSizeRatio: 0.5 };
      await apply("CompressionJob", "first", {
        model: uploaded,
        target: "gpu",
        recipe: timed,
        gates,
      });
      const id = await waitForJobId("cpj/first");
      let log = "";
      let statusAtFirst;
      for await (const piece of streamLog(installation, id)) {
        statusAtFirst ??= (await client.call("getJob", { params: { id } })).status;
        log += piece;
      }
      assert.ok(
        statusAtFirst !== undefined && !isTerminal(statusAtFirst),
        `the log began at ${statusAtFirst}`,
      );
      assert.match(log, /^Job job-\w+, attempt 1: compress .*\n[^]*\nLatency: .*\n$/);

      await untilField("cpj/first", ".status.status", "Completed");
      const status = await readResourceField("cpj/first", ".status");
      checkReport(compressionJobStatus.parse(JSON.parse(status)));
      single = await client.call("getJob", { params: { id } });
      assert.equal(single.status, "Completed");

      const pods = ["pods", "-l", `modeloptimization.dev/job-id=${id}`];
      const [pod = "", gpus] = (
        await kubectl([
          "get",
          ...pods,
          "-o",
          "jsonpath={.items[0].metadata.name} {.items[0].spec.containers[0].resources.limits.nvidia\\.com/gpu}",
        ])
      ).split(" ");
      assert.equal(gpus, "1");
      assert.equal(await printedLog(installation, pod), log);
      await kubectl(["delete", ...pods]);
      assert.equal(await readFullLog(installation, id), log);

      for (const { name, sha256, kind } of single.artifacts) {
        const file = join(cluster.folder, name);
        await client.downloadArtifact(id, name, { file });
        assert.equal(
          createHash("sha256")
            .update(await readFile(file))
            .digest("hex"),
          sha256,
        );
        if (kind === "model") assert.equal(await runPython(runModel, [file]), "[(1, 4)]\n");
      }
    },
  );

  await Promise.all([
    step("four pods at once make the same model as one", async () => {
      const recipe = { parallelism: 4, ...timed };
      const { id } = await client.call("startCompression", {
        body: { model: uploaded, target: "gpu", recipe },
      });
      const job = await finishedJob(id);
      assert.equal(job.status, "Completed");
      assert.equal(modelHash(job), modelHash(single));
      const labels = `modeloptimization.dev/job-id=${id},modeloptimization.dev/step=optimize`;
      const text = await kubectl(["get", "pods", "-l", labels, "-o", "json"]);
      const pods = endedPods.parse(JSON.parse(text)).items;
      assert.equal(pods.length, 4);
      const begins = pods.map(({ status }) => Date.parse(status.startTime));
      const ends = pods.map(({ status }) =>
        Date.parse(status.containerStatuses[0].state.terminated.finishedAt),
      );
      assert.ok(Math.max(...begins) <= Math.min(...ends), "a pod began when another had ended");
    }),

    step("four pods share a checkpoint of another host, which it leaves once", (t) =>
      testSharedCheckpoint(t, installation),
    ),

    step("a model on a volume of the workers is quantized, and nothing beside it", async () => {
      const evaluation = { level: "weights" };
      const model = { source: "file:///etc/passwd" };
      await apply("CompressionJob", "mounted", {
        kind: "quantize",
        model: mounted,
        target: "cpu",
        recipe: { evaluation },
      });
      await apply("CompressionJob", "curious", { model, target: "cpu" });
      await untilField("cpj/mounted", ".status.status", "Completed");
      await untilField("cpj/curious", ".status.status", "Failed");
      assert.equal(
        await readResourceField("cpj/curious", ".status.statusReason"),
        "model_source_refused",
      );
      const job = await client.call("getJob", {
        params: { id: await waitForJobId("cpj/mounted") },
      });
      assert.equal(`upload:sha256:${job.model.actualSha256}`, uploaded.source);
    }),
  ]);

  const request = {
    models: [uploaded, mounted],
    targets: ["cpu", "cpu-int8"],
    recipe: { evaluation: { level: "weights" as const } },
    gates: { maxSizeRatio: 0.5 },
  };
  await Promise.all([
    step("a Batch of kubectl makes a job of each model for each target", async () => {
      await apply("Batch", "nightly", request);
      await untilField("cbatch/nightly", ".status.status", "Completed");
      const [id, finished, marks] = (
        await kubectl([
          "get",
          "cbatch/nightly",
          "-o",
          "jsonpath={.status.batchId} {.status.finished} {.status.marks}",
        ])
      ).split(" ");
      assert.deepEqual([finished, marks], ["4/4", "cccc"]);
      const batch = await client.call("getBatch", { params: { id: id ?? "" } });
      assert.equal(batch.status, "Completed");
      assert.deepEqual(
        batch.jobs.map(({ target }) => target),
        ["cpu", "cpu-int8", "cpu", "cpu-int8"],
      );
    }),

    step("a batch of the REST interface is a Batch with four jobs", async () => {
      const { id } = await client.call("submitBatch", { body: request });
      await kubectl(["wait", "--for=create", `cbatch/${id}`, patience]);
      await untilField(`cbatch/${id}`, ".status.status", "Completed");
      const names = await kubectl([
        "get",
        "cpj",
        "-l",
        `modeloptimization.dev/batch=${id}`,
        "-o",
        "name",
      ]);
      assert.equal(names.trim().split("\n").length, 4);
      const { counts } = await client.call("getBatch", { params: { id } });
      assert.equal(counts.Completed, 4);
    }),
  ]);

  await step("resources that were to be deleted after their end are deleted", async () => {
    const brief = { dryRun: true, ttlSecondsAfterFinished: 0 };
    await apply("CompressionJob", "brief", { model: uploaded, target: "cpu", ...brief });
    await apply("Batch", "passing", { models: [uploaded], targets: ["cpu"], ...brief });
    await kubectl(["wait", "cpj/brief", "cbatch/passing", "--for=delete", patience]);
  });

  await step("kubectl shows jobs and batches as columns", async (t) => {
    const table = await kubectl(["get", "cpj,cbatch"]);
    t.diagnostic(table);
    assert.match(table, /NAME +STATUS +TARGET +RATIO +AGE\n/);
    assert.match(table, /first +Completed +gpu +0\.27/);
    assert.match(table, /nightly +Completed +4\/4/);
  });
}

const endedPods = z.object({
  items: z.array(
    z.object({
      status: z.object({
        startTime: z.string(),
        containerStatuses: z.tuple([
          z.object({ state: z.object({ terminated: z.object({ finishedAt: z.string() }) }) }),
        ]),
      }),
    }),
  ),
});

/** Prints the shapes of a model's outputs for an image of zeros. */
const runModel = `
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
outputs = session.run(None, {session.get_inputs()[0].name: numpy.zeros((1, 3, 224, 224), numpy.float32)})
print([output.shape for output in outputs])
`;

function checkReport({ report: { telemetry, gates = [] } = {} }: CompressionJobStatus): void {
  assert.ok((telemetry?.accuracy?.cosine ?? 0) > 0.99);
  assert.ok((telemetry?.latency?.result.p50Ms ?? 0) > 0);
  assert.equal(gates[0]?.passed, true);
}
