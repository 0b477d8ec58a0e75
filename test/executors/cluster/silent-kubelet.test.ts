import assert from "node:assert/strict";
import test from "node:test";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { startStandInKubelet } from "../../kubernetes/stand-in-kubelet.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { type ClusterService, startClusterService } from "./cluster-service.ts";
import { playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const options = { skip: clusterMissing };
/** Far more than are reconciled at the same time, or read from a node. */
const crashes = 100;
const crashesAtOnce = 10;
/** A read of a node that does not answer lasts so long. */
const silentReadMs = 15_000;

async function startJob({ client, api }: ClusterService): Promise<string> {
  const body = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });
  await until("the job is a resource", () => api.get(compressionJobs, id).catch(() => undefined));
  return id;
}

/** A job whose worker was killed on the node and left a log. */
async function crashJob(service: ClusterService, node: string): Promise<string> {
  const id = await startJob(service);
  const { metadata: owner } = await service.api.get(compressionJobs, id);
  const pod = await playPod(service, id, { node, owner });
  await pod.report({ type: "status", status: "Sharding" });
  await pod.end(137);
  return id;
}

/** Plays the operator. */
async function completeResource({ api }: ClusterService, name: string): Promise<void> {
  const status = { status: "Completed" } as const;
  await api.patch(compressionJobs, name, { status }, { subresource: "status" });
}

async function crashJobs(service: ClusterService, node: string): Promise<string[]> {
  const ids: string[] = [];
  const crashInTurn = async () => {
    for (let index = 0; index < crashes / crashesAtOnce; index++) {
      ids.push(await crashJob(service, node));
    }
  };
  await Promise.all(Array.from({ length: crashesAtOnce }, crashInTurn));
  return ids;
}

const title = `logs of ${crashes} pods on a silent node delay no cancellation, and are read later`;

test(title, options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { api, client, cluster } = service;
  const node = `node-${service.namespace}`;
  const kubelet = await startStandInKubelet(cluster, api, node);
  kubelet.silence();
  const crashed = await crashJobs(service, node);
  const id = await startJob(service);
  await until("logs are being read", async () => kubelet.reads > 0);
  const begin = performance.now();
  await client.call("cancelJob", { params: { id } });
  await until(
    "the operator is asked",
    async () => (await api.get(compressionJobs, id)).spec.cancel,
  );
  const tookMs = performance.now() - begin;
  t.diagnostic(`${crashes} ended pods, cancellation written after ${tookMs.toFixed(0)} ms`);
  assert.ok(tookMs < silentReadMs);

  kubelet.write({ at: "2026-01-01T00:00:00.000000000Z", text: "Killed" });
  kubelet.wake();
  for (const each of crashed) {
    for await (const { text } of client.followLogs(each)) {
      assert.equal(text, "Killed");
      break;
    }
  }
});

test("lines that nobody can read any more are replaced by one that says so", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { api, client, cluster } = service;
  const node = `node-${service.namespace}`;
  const kubelet = await startStandInKubelet(cluster, api, node);
  kubelet.missing = "unable to retrieve container logs for containerd://21fc";
  const gone = await crashJob(service, node);
  const deleted = await startJob(service);
  const pod = await playPod(service, deleted);
  await pod.report({ type: "status", status: "Sharding" });
  await cluster.kubectl(["delete", "pod", pod.name, "--force", "-n", service.namespace]);
  for (const id of [gone, deleted]) {
    for await (const { text } of client.followLogs(id)) {
      assert.match(text, /^\(lines of the worker may be missing here: .*pod/);
      break;
    }
  }
});

test(
  "a job whose pod goes while its log is read ends with a line that says so",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const { api, client, cluster } = service;
    const node = `node-${service.namespace}`;
    const kubelet = await startStandInKubelet(cluster, api, node);
    kubelet.silence();
    const id = await startJob(service);
    const pod = await playPod(service, id, { node });
    await pod.report({ type: "status", status: "Sharding" });
    await pod.end(0, { outcome: "Completed", lastSeq: 9 });
    await until("its log is being read", async () => kubelet.reads > 0);
    await cluster.kubectl(["delete", "pod", pod.name, "--force", "-n", service.namespace]);
    await completeResource(service, id);
    const later = await startJob(service);
    await completeResource(service, later);
    await until("the service has read the later status", async () => {
      return (await client.call("getJob", { params: { id: later } })).status === "Completed";
    });

    kubelet.missing = "unable to retrieve container logs for containerd://21fc";
    kubelet.wake();
    const texts = await Array.fromAsync(client.followLogs(id), ({ text }) => text);
    assert.equal(texts.length, 1);
    assert.match(texts[0] ?? "", /^\(lines of the worker may be missing here: .*pod/);
  },
);
