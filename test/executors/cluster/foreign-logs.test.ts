import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { resources } from "../../../src/kubernetes/resources.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { startStandInKubelet } from "../../kubernetes/stand-in-kubelet.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { startClusterService } from "./cluster-service.ts";
import { playPod } from "./played-pod.ts";

const options = { skip: clusterMissing };
const at = "2026-01-01T00:00:00.000Z";

/** A service, and a node whose only log is what the test writes. */
async function startWithNode(t: TestContext) {
  const service = await startClusterService(t, await createTestNamespace());
  const node = `node-${service.namespace}`;
  const log = await startStandInKubelet(service.cluster, service.api, node);
  const startJob = async () => {
    const body = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };
    return (await service.client.call("startCompression", { body })).id;
  };
  const followUntil = async (id: string, end: string) => {
    const lines: string[] = [];
    for await (const { text } of service.client.followLogs(id)) {
      lines.push(text);
      if (text === end) break;
    }
    return lines;
  };
  return { service, node, log, startJob, followUntil };
}

test("a log of a pod that others made for a job is not the job's", options, async (t) => {
  const { service, node, log, startJob, followUntil } = await startWithNode(t);
  const id = await startJob();
  const { metadata } = await service.api.create(resources.jobs, {
    metadata: { name: "forged" },
    spec: {
      suspend: true,
      template: {
        spec: { restartPolicy: "Never", containers: [{ name: "worker", image: "none" }] },
      },
    },
  });
  const workerJob = { name: metadata.name, uid: metadata.uid };
  const forged = await playPod(service, id, { name: `${id}-forged`, node, workerJob });
  log.write({ at, text: "forged" });
  await forged.end(137);
  const other = await startJob();
  const pod = await playPod(service, other, { node });
  await pod.report({ type: "status", status: "Sharding" });
  await pod.end(137);
  await followUntil(other, "forged");
  const worker = await playPod(service, id);
  const error = { code: "model_invalid", message: "It is not a model" } as const;
  await worker.report({ type: "result", outcome: "Failed", error });
  const lines = await Array.fromAsync(service.client.followLogs(id));
  assert.deepEqual(lines, []);
});

test("a worker's log cannot give its job a file of another job", options, async (t) => {
  const { service, node, log, startJob, followUntil } = await startWithNode(t);
  const victim = await playPod(service, await startJob());
  const secret = await victim.store("secret");
  const id = await startJob();
  const pod = await playPod(service, id, { node });
  await pod.report({ type: "status", status: "Sharding" });
  const artifacts = [
    { name: "model.onnx", kind: "model", ...secret },
    { name: "report.json", kind: "report", sha256: "0".repeat(64), bytes: 6 },
  ];
  const events = artifacts.map((artifact, index) =>
    JSON.stringify({ seq: index + 2, at, type: "artifact", artifact }),
  );
  const texts = [...events, "Killed"];
  log.write(...texts.map((text) => ({ at, text })));
  await pod.end(137);
  const lines = await followUntil(id, "Killed");
  assert.match(lines.join("\n"), /a file that the worker reported.* is another job's .* left out/);
  const job = await service.client.call("getJob", { params: { id } });
  assert.deepEqual(
    job.artifacts.map(({ name }) => name),
    ["report.json"],
  );
});

test(
  "files are listed that the service reported before its records were restored",
  options,
  async (t) => {
    const { service, node, log, startJob } = await startWithNode(t);
    const same = await (await playPod(service, await startJob())).store("the same result");
    const id = await startJob();
    const pod = await playPod(service, id, { node });
    await pod.report({ type: "status", status: "Sharding" });
    await pod.report({ type: "status", status: "Optimizing" });
    const artifacts = [
      { name: "model.onnx", kind: "model", ...same },
      { name: "report.json", kind: "report", sha256: "0".repeat(64), bytes: 6 },
    ] as const;
    // The service takes back no report on a job that has ended for the operator.
    const status = { status: "Completed" as const, report: { artifacts: [...artifacts] } };
    await service.api.patch(compressionJobs, id, { status }, { subresource: "status" });
    const events = [
      ...artifacts.map((artifact) => ({ type: "artifact", artifact })),
      { type: "result", outcome: "Completed" },
    ].map((event, index) => JSON.stringify({ seq: index + 3, at, ...event }));
    log.write(...events.map((text) => ({ at, text })));
    await pod.end(137);
    await Array.fromAsync(service.client.followLogs(id));
    const job = await service.client.call("getJob", { params: { id } });
    assert.deepEqual(job.artifacts, [artifacts[0], { ...artifacts[1], missing: true }]);
    assert.deepEqual(
      job.telemetry.warnings.map(({ code, message }) => [code, message]),
      [
        [
          "files_missing",
          "The backup that the records were restored from is older than report.json",
        ],
      ],
    );
  },
);
