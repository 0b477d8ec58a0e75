import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { systemClock } from "../../src/controller-runtime/clock.ts";
import {
  type Controller,
  createSource,
  type Lane,
  type Source,
} from "../../src/controller-runtime/controller.ts";
import { startController } from "../../src/controller-runtime/start-controller.ts";
import { watchResource } from "../../src/controller-runtime/watch-resource.ts";
import { WriteExpectations } from "../../src/controller-runtime/write-expectations.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster, mountServiceAccount } from "../kubernetes/connect-test-cluster.ts";
import { startTcpRelay } from "../support/tcp-relay.ts";
import { type ConfigMap, configMaps, notRootCertificate } from "./config-maps.ts";
import { createHappenings } from "./happenings.ts";
import { createManualClock } from "./manual-clock.ts";

const skip = clusterMissing;

async function watchConfigMaps(t: TestContext, client: KubernetesClient) {
  const watched = watchResource<ConfigMap>({
    client,
    type: configMaps,
    fieldSelector: notRootCertificate,
    log: () => {},
  });
  t.after(() => watched.stop());
  await watched.synced;
  return watched;
}

type Reconciler = Pick<Controller, "sources" | "reconcile"> & Partial<Controller>;

function start(t: TestContext, controller: Reconciler, clock = systemClock) {
  const logged: string[] = [];
  const log = (level: string, message: string, fields?: Record<string, unknown>) => {
    logged.push(`${level}: ${message} ${String(fields?.["key"])}: ${String(fields?.["error"])}`);
  };
  const running = startController({ name: "test", workers: 2, ...controller }, { clock, log });
  t.after(() => running.stop());
  return { running, logged };
}

/** Keys that a test adds by hand. */
function makeSource(keys: readonly string[] = []) {
  let listen: (key: string, lane: Lane) => void = () => {};
  const source: Source = {
    keys: () => keys,
    subscribe: (listener) => {
      listen = listener;
      return () => {
        listen = () => {};
      };
    },
  };
  return { source, add: (key: string, lane: Lane = "normal") => listen(key, lane) };
}

test(
  "what is there, changes or goes is reconciled under the names of what it belongs to",
  { skip },
  async (t) => {
    const { client } = await connectTestCluster();
    const make = (name: string) => client.create(configMaps, { metadata: { name }, data: {} });
    await make("early-1");
    const watched = await watchConfigMaps(t, client);
    const seen = createHappenings();
    const source = createSource(watched, {
      mapToKeys: ({ metadata }) => [metadata.name.split("-")[0] ?? ""],
    });
    start(t, {
      sources: [source],
      reconcile: async (key) => {
        const sizes = Array.from(
          watched.cache.values(),
          ({ metadata, data }) => `${metadata.name}=${data?.["size"]}`,
        );
        seen.record(`${key}: ${sizes.join(" ")}`);
      },
    });
    await seen.until(([first]) => first === "early: early-1=undefined");
    await client.patch(configMaps, "early-1", { data: { size: "5" } });
    await seen.until((all) => all.includes("early: early-1=5"));
    await make("late-1");
    await seen.until((all) => all.includes("late: early-1=5 late-1=undefined"));
    await client.delete(configMaps, "early-1", { propagationPolicy: "Background" });
    await seen.until((all) => all.includes("early: late-1=undefined"));
  },
);

test(
  "a key that fails is logged and tried again, one that conflicts is tried again in silence",
  { skip },
  async (t) => {
    const { client } = await connectTestCluster();
    const stale = await client.create(configMaps, { metadata: { name: "a" } });
    await client.patch(configMaps, "a", { data: { changed: "since" } });
    const tries = createHappenings();
    const { logged } = start(t, {
      sources: [makeSource(["fails", "conflicts"]).source],
      reconcile: async (key) => {
        tries.record(key);
        if (tries.all.filter((each) => each === key).length > 2) return;
        if (key === "fails") throw new Error("Out of luck");
        await client.replace(configMaps, stale);
      },
    });
    await tries.until((all) => all.length === 6);
    assert.deepEqual(
      logged,
      Array.from({ length: 2 }, () => "error: Cannot reconcile fails: Error: Out of luck"),
    );
  },
);

for (const requeueAfterMs of [0, -1, Number.NaN]) {
  test(`a key that asks to be requeued after ${requeueAfterMs} ms is not a hot loop`, async (t) => {
    const clock = createManualClock();
    const runs = createHappenings();
    start(
      t,
      {
        sources: [makeSource(["a"]).source],
        reconcile: async (key) => {
          runs.record(key);
          return { requeueAfterMs };
        },
      },
      clock,
    );
    for (let ms = 0; ms < 60_000; ms += 5) {
      clock.advance(5);
      await turn();
    }
    assert.ok(runs.all.length < 20, `${runs.all.length} runs in a minute`);
  });
}

test("changes from a grouped source that come in a row are reconciled once", async (t) => {
  const clock = createManualClock();
  const runs = createHappenings();
  const { source, add } = makeSource();
  const reconcile = async (key: string) => runs.record(key);
  start(t, { sources: [{ ...source, isGrouped: true }], reconcile }, clock);
  for (const key of ["a", "b", "a"]) add(key);
  clock.advance(1_000);
  await runs.until((all) => all.length === 2);
  await turn();
  assert.deepEqual(runs.all, ["a", "b"]);
});

test("a key is reconciled again when it asked to be", async (t) => {
  const clock = createManualClock();
  const runs = createHappenings();
  start(
    t,
    {
      sources: [makeSource(["a"]).source],
      reconcile: async () => {
        runs.record(`at ${clock.now()}`);
        return { requeueAfterMs: 5_000 };
      },
    },
    clock,
  );
  while (runs.all.length < 3) {
    await turn();
    clock.advance(1_000);
  }
  assert.deepEqual(runs.all, ["at 0", "at 5000", "at 10000"]);
});

test("every key is looked at again now and then, though nothing happens", async (t) => {
  const clock = createManualClock();
  const seen = createHappenings();
  start(
    t,
    { sources: [makeSource(["a", "b"]).source], reconcile: async (key) => seen.record(key) },
    clock,
  );
  await seen.until((all) => all.length === 2);
  clock.advance(720_000);
  await seen.until((all) => all.length === 4);
  assert.deepEqual(seen.all.toSorted(), ["a", "a", "b", "b"]);
});

test("a key waits until the cache has what was written for it", { skip }, async (t) => {
  const { cluster, client } = await connectTestCluster();
  await using relay = await startTcpRelay(cluster.url);
  const source = await mountServiceAccount(cluster, relay.port);
  const lagging = await connectCluster(source, { namespace: client.namespace });
  t.after(() => lagging.close());
  const watched = await watchConfigMaps(t, lagging);
  const byHand = makeSource();
  const seen = createHappenings();
  start(t, {
    workers: 1,
    sources: [byHand.source, createSource(watched, { mapToKeys: () => ["parent"] })],
    reconcile: async (key, run) => {
      if (key === "parent" && watched.size === 0) {
        run.expectWrite(
          watched,
          await client.create(configMaps, { metadata: { generateName: "child-" } }),
        );
        seen.record("a child is made");
      } else seen.record(`${key} sees ${watched.size} children`);
    },
  });
  relay.interrupt();
  byHand.add("parent");
  await seen.until((all) => all.length === 1);
  byHand.add("parent");
  byHand.add("other");
  await seen.until((all) => all.includes("other sees 0 children"));
  relay.restore();
  await seen.until((all) => all.includes("parent sees 1 children"));
  assert.deepEqual(seen.all, [
    "a child is made",
    "other sees 0 children",
    "parent sees 1 children",
  ]);
});

test("a write whose event is lost holds its key up for half a minute", () => {
  const clock = createManualClock();
  const writes = new WriteExpectations(clock);
  let seen = false;
  writes.expect("a", () => seen);
  clock.advance(10_000);
  writes.expect("a", () => false);
  assert.equal(writes.remainingMs("a"), 30_000);
  assert.equal(writes.remainingMs("b"), 0);
  seen = true;
  clock.advance(29_999);
  assert.equal(writes.remainingMs("a"), 1);
  clock.advance(1);
  assert.equal(writes.remainingMs("a"), 0);
});

test("a controller that is stopped ends what it does and begins nothing", async (t) => {
  const byHand = makeSource();
  const seen = createHappenings();
  const finish = Promise.withResolvers<void>();
  const { running } = start(t, {
    sources: [byHand.source],
    reconcile: async (key) => {
      seen.record(`${key} begins`);
      await finish.promise;
      seen.record(`${key} ends`);
    },
  });
  for (const key of ["a", "b", "c"]) byHand.add(key);
  await seen.until((all) => all.length === 2);
  const stopped = running.stop().then(() => seen.record("stopped"));
  byHand.add("d");
  finish.resolve();
  await stopped;
  assert.deepEqual(seen.all, ["a begins", "b begins", "a ends", "b ends", "stopped"]);
});
