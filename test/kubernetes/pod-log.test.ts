import assert from "node:assert/strict";
import { test } from "node:test";
import { isNotFound } from "../../src/kubernetes/kubernetes-error.ts";
import { readPodLog } from "../../src/kubernetes/pod-log.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "./connect-test-cluster.ts";
import { startStandInKubelet } from "./stand-in-kubelet.ts";

const log = { pod: "a", container: "work" };

test("readPodLog() gives every line with its time", { skip: clusterMissing }, async () => {
  const { client, kubelet } = await runningPod();
  const lines = [line(1, "first"), line(2, ""), line(2, "größer 漢字"), line(3, " spaced  ")];
  kubelet.write(...lines);
  assert.deepEqual(await Array.fromAsync(readPodLog(client, log)), lines);
});

test("readPodLog() reads once where the last line is known", { skip: clusterMissing }, async () => {
  const { client, kubelet, calls } = await runningPod();
  kubelet.write(line(1, "first"), line(2, "last"));
  const texts: string[] = [];
  const hasLastLine = () => texts.at(-1) === "last";
  for await (const { text } of readPodLog(client, log, hasLastLine)) texts.push(text);
  assert.deepEqual(texts, ["first", "last"]);
  assert.equal(calls.filter(({ resource }) => resource === "pods/log").length, 1);
});

test("readPodLog() gives a line above a mebibyte in pieces", { skip: clusterMissing }, async () => {
  const { client, kubelet } = await runningPod();
  const long = "漢".repeat(800_000);
  kubelet.write(line(1, long), line(2, "after"));
  const read = await Array.fromAsync(readPodLog(client, log));
  assert.equal(read.length, 4);
  assert.equal(joinLines(read.slice(0, 3)), long);
  assert.deepEqual(new Set(read.map(({ at }) => at)), new Set([line(1, "").at, line(2, "").at]));
  assert.ok(read.every(({ text }) => Buffer.byteLength(text) <= 1024 * 1024));
});

test(
  "readPodLog() misses nothing when the API server loses the node",
  { skip: clusterMissing },
  async () => {
    const { client, kubelet } = await runningPod();
    const lines = Array.from({ length: 1000 }, (_, index) =>
      line(index / 100, index % 3 === 0 ? "same" : `line ${index}`),
    );
    kubelet.write(...lines);
    kubelet.breakAfterBytes = 20_000;
    assert.deepEqual(await Array.fromAsync(readPodLog(client, log)), lines);
  },
);

test(
  "readPodLog() of a pod that is gone, or has not begun, says so",
  { skip: clusterMissing },
  async () => {
    const { client, kubelet } = await runningPod();
    await assert.rejects(Array.fromAsync(readPodLog(client, { ...log, pod: "b" })), isNotFound);
    kubelet.started = false;
    await assert.rejects(Array.fromAsync(readPodLog(client, log)), {
      status: 400,
      message: /waiting to start/,
    });
  },
);

test(
  "readPodLog() takes no words of the kubelet for output",
  { skip: clusterMissing },
  async () => {
    const { client, kubelet } = await runningPod();
    kubelet.missing = "unable to retrieve container logs for containerd://21fc";
    await assert.rejects(Array.fromAsync(readPodLog(client, log)), isNotFound);
  },
);

/** A pod on a node of its own, whose log is what the test writes. */
async function runningPod() {
  const { cluster, client, calls } = await connectTestCluster();
  const nodeName = `node-${client.namespace}`;
  const kubelet = await startStandInKubelet(cluster, client, nodeName);
  const containers = [{ name: "work", image: "none" }];
  await client.create(resources.pods, { metadata: { name: "a" }, spec: { nodeName, containers } });
  return { client, kubelet, calls };
}

function line(second: number, text: string) {
  return {
    at: new Date(1_700_000_000_000 + second * 1000).toISOString().replace("Z", "000000Z"),
    text,
  };
}

function joinLines(lines: readonly { text: string }[]): string {
  return lines.map(({ text }) => text).join("");
}
