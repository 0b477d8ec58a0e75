import assert from "node:assert/strict";
import test from "node:test";
import { childCompressionJob } from "../../../src/resources/child-compression-job.ts";
import type { Batch } from "../../../src/contract/batches/batch.ts";
import { batches, compressionJobs } from "../../../src/resources/custom-resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { type ClusterService, startClusterService, untilRecorded } from "./cluster-service.ts";
import { playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const model = { source: "https://models.example/detector.onnx" };
const [before, now] = ["1".repeat(40), "2".repeat(40)];

/** Plays the operator and the worker: the batch's only job is worked on, with a result of the given size. */
async function complete(
  service: ClusterService,
  resource: string,
  { jobs }: Batch,
  resultBytes: number,
) {
  const { api } = service;
  const [job] = jobs;
  assert.ok(job);
  const batch = await until("the batch is a resource", () =>
    api.get(batches, resource).catch(() => undefined),
  );
  const child = await api.create(compressionJobs, childCompressionJob(batch, 0));
  const pod = await playPod(service, job.id);
  const size = { originalBytes: 1000, resultBytes, ratio: resultBytes / 1000, predicted: false };
  await pod.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "telemetry", telemetry: { size } },
    { type: "result", outcome: "Completed" },
  );
  return untilRecorded(api, child.metadata.name);
}

test(
  "jobs of a Batch over REST are compared with those of one made with kubectl",
  { skip: clusterMissing },
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const { api, client } = service;
    const suite = "models";
    const revision = { sha: before, branch: "main", recordBaseline: true };
    const flags = { dryRun: false, failFast: false, cancel: false, suspend: false };
    const spec = {
      kind: "compress" as const,
      models: [model],
      targets: ["cpu"],
      suite,
      revision,
      parallelism: 1,
      ...flags,
    };
    await api.create(batches, { metadata: { name: "main" }, spec });
    const { id } = await until("the batch is recorded", async () => {
      return (await client.call("listBatches", { query: { suite } })).batches[0];
    });
    const recorded = await client.call("getBatch", { params: { id } });
    assert.deepEqual(recorded.revision, revision);
    await complete(service, "main", recorded, 300);

    const compared = { sha: now, base: { branch: "main", sha: before } };
    const body = {
      models: [model],
      targets: ["cpu"],
      suite,
      revision: compared,
      gates: { maxSizeRegression: 0.05 },
    };
    const submitted = await client.call("submitBatch", { body });
    const status = await complete(service, submitted.id, submitted, 330);
    assert.deepEqual((await api.get(batches, submitted.id)).spec.revision, {
      ...compared,
      recordBaseline: false,
    });
    const gate = {
      gate: "maxSizeRegression",
      limit: 0.05,
      level: "fail",
      actual: 0.1,
      baseline: 300,
      passed: false,
    };
    assert.deepEqual(status.gates, [gate]);
    const job = await client.call("getJob", { params: { id: submitted.jobs[0]?.id ?? "" } });
    assert.equal(job.baseline?.jobId, recorded.jobs[0]?.id);
    assert.equal((await client.call("getBatch", { params: { id: submitted.id } })).gatesFailed, 1);
  },
);
