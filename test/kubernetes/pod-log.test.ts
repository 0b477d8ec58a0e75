import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { isNotFound } from "../../src/kubernetes/kubernetes-error.ts";
import { followPodLog, type PodLogLine, readPodLog } from "../../src/kubernetes/pod-log.ts";
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
  "followPodLog() gives each line once through cuts and rotation, until the end",
  { skip: clusterMissing },
  async () => {
    const { client, kubelet } = await runningPod();
    const follower = startFollower(client);
    const lines = [line(1, "one"), line(1, "one"), line(1, "one")];
    kubelet.write(...lines);
    await follower.got(3);
    kubelet.cut();
    await kubelet.opened(2);
    lines.push(line(1, "one"), line(1.5, "two"));
    kubelet.write(...lines.slice(3));
    await follower.got(5);
    kubelet.rotate();
    kubelet.end();
    await kubelet.opened(3);
    lines.push(line(2, "three"), line(9, "four"));
    kubelet.write(...lines.slice(5));
    await follower.got(7);
    await endContainer(client);
    lines.push(line(9, "last"));
    kubelet.write(...lines.slice(7));
    kubelet.end();
    assert.deepEqual(await follower.ended, lines);
  },
);

test("followPodLog() waits for the container's start", { skip: clusterMissing }, async () => {
  const { client, kubelet, calls } = await runningPod();
  kubelet.started = false;
  const follower = startFollower(client);
  while (!calls.some(({ resource, code }) => resource === "pods/log" && code === "400"))
    await client.get(resources.pods, "a");
  kubelet.started = true;
  kubelet.write(line(1, "begins"));
  await follower.got(1);
  await endContainer(client);
  kubelet.end();
  assert.deepEqual(await follower.ended, [line(1, "begins")]);
});

test("followPodLog() stops when it is told to", { skip: clusterMissing }, async () => {
  const { client, kubelet } = await runningPod();
  const follower = startFollower(client);
  kubelet.write(line(1, "one"));
  await follower.got(1);
  follower.stop.abort(new Error("Enough"));
  await assert.rejects(follower.ended, /^Error: Enough$/);
});

/** A pod on a node of its own, whose log is what the test writes. */
async function runningPod() {
  const { cluster, client, calls } = await connectTestCluster();
  const nodeName = `node-${client.namespace}`;
  const kubelet = await startStandInKubelet(cluster, client, nodeName);
  const containers = [{ name: "work", image: "none" }];
  await client.create(resources.pods, { metadata: { name: "a" }, spec: { nodeName, containers } });
  return { client, kubelet, calls };
}

async function endContainer(client: KubernetesClient): Promise<void> {
  const state = { terminated: { exitCode: 0 } };
  const ended = { name: "work", image: "none", imageID: "", ready: false, restartCount: 0, state };
  await client.patch(
    resources.pods,
    "a",
    { status: { containerStatuses: [ended] } },
    { subresource: "status" },
  );
}

function startFollower(client: KubernetesClient) {
  const stop = new AbortController();
  const lines: PodLogLine[] = [];
  let wake = () => {};
  const ended = (async () => {
    for await (const read of followPodLog(client, log, { signal: stop.signal })) {
      lines.push(read);
      wake();
    }
    return lines;
  })();
  return {
    stop,
    ended,
    async got(count: number) {
      while (lines.length < count) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}

function line(second: number, text: string): PodLogLine {
  return {
    at: new Date(1_700_000_000_000 + second * 1000).toISOString().replace("Z", "000000Z"),
    text,
  };
}

function joinLines(lines: readonly PodLogLine[]): string {
  return lines.map(({ text }) => text).join("");
}
