import assert from "node:assert/strict";
import test from "node:test";
import { systemClock } from "../../src/controller-runtime/clock.ts";
import { createEventRecorder } from "../../src/controller-runtime/event-recorder.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { type KubernetesEvent, resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster, mountServiceAccount } from "../kubernetes/connect-test-cluster.ts";
import { configMaps } from "./config-maps.ts";
import { createHappenings } from "./happenings.ts";
import { createManualClock } from "./manual-clock.ts";

const skip = clusterMissing;
const started = { type: "Normal", reason: "Started", message: "The job runs" } as const;

function makeRecorder(client: KubernetesClient, clock = systemClock) {
  const logged = createHappenings();
  const log = (_: string, message: string) => logged.record(message);
  return {
    recorder: createEventRecorder({ client, component: "test-operator", clock, log }),
    logged,
  };
}

async function listEvents(client: KubernetesClient): Promise<KubernetesEvent[]> {
  const pages = await Array.fromAsync(client.list(resources.events));
  return pages.flatMap(({ items }) => items);
}

test("kubectl describe shows an event of an object, and how often it came", { skip }, async () => {
  const { cluster, client } = await connectTestCluster();
  const object = await client.create(configMaps, { metadata: { name: "a" } });
  const { recorder } = makeRecorder(client);
  recorder.record(configMaps, object, started);
  recorder.record(configMaps, object, {
    type: "Warning",
    reason: "Failed",
    message: "It is over ".repeat(200),
  });
  recorder.record(configMaps, object, started);
  await recorder.close();
  const { recorder: next } = makeRecorder(client);
  next.record(configMaps, object, started);
  await next.close();
  const events = await listEvents(client);
  assert.deepEqual(events.map(({ reason, count }) => `${reason} x${count}`).toSorted(), [
    "Failed x1",
    "Started x3",
  ]);
  const text = await cluster.kubectl(["describe", "configmap", "a", "-n", client.namespace]);
  assert.match(text, /Normal +Started +\S+ \(x3 over \S+\) +test-operator +The job runs/);
});

test(
  "an object that would fill the cluster with events is cut off for a while",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    const [noisy, quiet] = await Promise.all(
      ["noisy", "quiet"].map((name) => client.create(configMaps, { metadata: { name } })),
    );
    assert.ok(noisy !== undefined && quiet !== undefined);
    const clock = createManualClock();
    const { recorder } = makeRecorder(client, clock);
    for (let i = 0; i < 40; i++)
      recorder.record(configMaps, noisy, { ...started, message: `Try ${i}` });
    recorder.record(configMaps, quiet, started);
    clock.advance(600_000);
    for (let i = 40; i < 45; i++)
      recorder.record(configMaps, noisy, { ...started, message: `Try ${i}` });
    await recorder.close();
    const names = (await listEvents(client)).map(({ involvedObject }) => involvedObject.name);
    assert.equal(names.filter((name) => name === "quiet").length, 1);
    assert.equal(names.filter((name) => name === "noisy").length, 25 + 2);
  },
);

test("an event that cannot be written is logged and nothing else", { skip }, async (t) => {
  const { cluster, client } = await connectTestCluster();
  const object = await client.create(configMaps, { metadata: { name: "a" } });
  const token = await cluster.kubectl(["create", "token", "default", "-n", client.namespace]);
  const pod = await mountServiceAccount({ ...cluster, adminToken: token.trim() });
  const weak = await connectCluster(pod, { namespace: client.namespace });
  t.after(() => weak.close());
  const { recorder, logged } = makeRecorder(weak);
  recorder.record(configMaps, object, started);
  await logged.until((all) => all.includes("Cannot write an event"));
  await recorder.close();
});
