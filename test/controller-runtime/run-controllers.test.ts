import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { type Controller, createSource } from "../../src/controller-runtime/controller.ts";
import { NotLeaderError } from "../../src/controller-runtime/leadership.ts";
import { createRuntimeMetrics } from "../../src/controller-runtime/metrics.ts";
import { runControllers, type RunOptions } from "../../src/controller-runtime/run-controllers.ts";
import {
  watchResource,
  type WatchedResource,
} from "../../src/controller-runtime/watch-resource.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import { isNotFound } from "../../src/kubernetes/kubernetes-error.ts";
import { objectKey } from "../../src/kubernetes/object-key.ts";
import { resources, resourceType } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { type ConfigMap, configMaps, notRootCertificate } from "./config-maps.ts";
import { until } from "../support/until.ts";
import { createHappenings } from "./happenings.ts";

const skip = clusterMissing;
const name = "operator";
const timing = { leaseMs: 60_000, renewDeadlineMs: 55_000, retryMs: 300 };

type Place = Awaited<ReturnType<typeof createTestNamespace>>;
type Reconciler = (
  tools: Parameters<RunOptions["controllers"]>[0] & { watched: WatchedResource<ConfigMap> },
) => Controller["reconcile"];

/** An operator as its `main.ts` would run it. */
async function startOperator(
  t: TestContext,
  place: Place,
  options: { identity: string; reconciler: Reconciler; type?: typeof configMaps },
) {
  const { identity, reconciler, type = configMaps } = options;
  const metrics = createRuntimeMetrics();
  const { onCall } = metrics;
  const client = await connectCluster(
    { kubeconfig: place.cluster.kubeconfig },
    { namespace: place.namespace, onCall },
  );
  const logged = createHappenings();
  const ports: number[] = [];
  const log = (_: string, message: string, fields?: Record<string, unknown>) => {
    if (typeof fields?.["port"] === "number") ports.push(fields["port"]);
    logged.record(message);
  };
  const watched = watchResource({ client, type, fieldSelector: notRootCertificate, log });
  const stop = new AbortController();
  const ended = runControllers(
    {
      client,
      component: "test-operator",
      watched: [watched],
      controllers: (tools) => [
        {
          name: "test",
          workers: 2,
          sources: [createSource(watched, { mapToKeys: ({ metadata }) => [objectKey(metadata)] })],
          reconcile: reconciler({ ...tools, watched }),
        },
      ],
      election: { name, identity, timing },
      health: { host: "127.0.0.1", port: 0 },
      metrics,
      log,
    },
    stop.signal,
  );
  t.after(async () => {
    stop.abort();
    await Promise.allSettled([ended]);
    await client.close();
  });
  await logged.until(() => ports.length > 0);
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${ports[0]}${path}`)).text();
  return { client, ended, logged, ask, stop: () => stop.abort(new Error("Asked to stop")) };
}

/** Signs every object that is not signed. */
function signAs(identity: string): Reconciler {
  return ({ client, watched, events }) =>
    async (key, run) => {
      const object = watched.cache.get(key);
      if (object === undefined || object.data?.["signed"] !== undefined) return;
      const { name } = object.metadata;
      const signed = { data: { signed: identity } };
      run.expectWrite(watched, await client.patch(configMaps, name, signed));
      events.record(configMaps, object, {
        type: "Normal",
        reason: "Signed",
        message: `Signed by ${identity}`,
      });
    };
}

test("one operator of two works; when it is stopped the other goes on", { skip }, async (t) => {
  const place = await createTestNamespace();
  const first = await startOperator(t, place, { identity: "first", reconciler: signAs("first") });
  await first.logged.until((all) => all.includes("Leading"));
  const second = await startOperator(t, place, {
    identity: "second",
    reconciler: signAs("second"),
  });
  await second.logged.until((all) => all.includes("Caches are filled, waiting for the leadership"));
  for (const operator of [first, second]) assert.equal(await operator.ask("/readyz"), "ok\n");

  const { client } = second;
  const signatures = watchResource<ConfigMap>({
    client,
    type: configMaps,
    fieldSelector: notRootCertificate,
    log: () => {},
  });
  // Before the client is closed.
  await using stack = new AsyncDisposableStack();
  stack.defer(() => signatures.stop());
  const makeMany = async (prefix: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const signedBy = () =>
      Array.from(
        signatures.cache.values(),
        ({ metadata, data }) => `${metadata.name} ${data?.["signed"]}`,
      );
    const unsubscribe = signatures.onChange(() => {
      const own = signedBy().filter((line) => line.startsWith(prefix));
      if (own.length === 10 && own.every((line) => !line.endsWith("undefined"))) resolve();
    });
    const names = Array.from({ length: 10 }, (_, i) => `${prefix}-${i}`);
    await Promise.all(names.map((each) => client.create(configMaps, { metadata: { name: each } })));
    await promise;
    unsubscribe();
    return new Set(
      signedBy().flatMap((line) => (line.startsWith(prefix) ? [line.split(" ")[1]] : [])),
    );
  };
  assert.deepEqual(await makeMany("early"), new Set(["first"]));
  // It looks once more at what it has signed.
  const ofFirst = await until("the first has nothing left to do", async () => {
    const text = await first.ask("/metrics");
    return /^workqueue_depth\{name="test"\} 0$/m.test(text) && text;
  });
  const figures = [ofFirst, await second.ask("/metrics")] as const;
  assert.match(figures[0], /^leader_election_master_status\{name="operator"\} 1$/m);
  assert.match(figures[1], /^leader_election_master_status\{name="operator"\} 0$/m);
  for (const figure of [
    /^workqueue_adds_total\{name="test"\} [1-9]/m,
    /^workqueue_queue_duration_seconds_count\{name="test"\} [1-9]/m,
    /^workqueue_work_duration_seconds_count\{name="test"\} [1-9]/m,
    /^mos_reconcile_seconds_count\{controller="test",result="done"\} [1-9]/m,
    /^mos_cache_objects\{resource="configmaps"\} 10$/m,
    /^mos_cache_silence_seconds\{resource="configmaps"\} \d/m,
    /^mos_kubernetes_call_seconds_count\{verb="patch",resource="configmaps",code="200"\} [1-9]/m,
    /^nodejs_eventloop_lag_seconds \d/m,
  ]) {
    assert.match(figures[0], figure);
  }

  first.stop();
  await first.ended;
  await second.logged.until((all) => all.includes("Leading"));
  assert.deepEqual(await makeMany("late"), new Set(["second"]));
  assert.deepEqual(first.logged.all.slice(-1), ["Stopping: running reconciliations end"]);
  const pages = await Array.fromAsync(client.list(resources.events));
  const sources = pages.flatMap(({ items }) => items.map(({ message }) => message));
  assert.ok(sources.includes("Signed by first"));
});

test(
  "an operator that lost the leadership writes nothing more and ends with the reason",
  { skip },
  async (t) => {
    const place = await createTestNamespace();
    const inMidst = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const result = Promise.withResolvers<unknown>();
    const { client, ended, logged } = await startOperator(t, place, {
      identity: "first",
      reconciler: (tools) => async () => {
        inMidst.resolve();
        await goOn.promise;
        await tools.client.create(configMaps, { metadata: { name: "late" } }).catch(result.resolve);
      },
    });
    await client.create(configMaps, { metadata: { name: "a" } });
    await inMidst.promise;
    await client.patch(resources.leases, name, { spec: { holderIdentity: "second" } });
    await logged.until((all) => all.includes("Stopping: running reconciliations end"));
    goOn.resolve();
    assert.ok((await result.promise) instanceof NotLeaderError);
    await assert.rejects(ended, NotLeaderError);
    await assert.rejects(client.get(configMaps, "late"), isNotFound);
  },
);

test(
  "an operator is stopped while it waits for its caches, and while it waits for the leadership",
  { skip },
  async (t) => {
    const place = await createTestNamespace();
    const reconciler: Reconciler = () => async () => {};
    const type = resourceType<ConfigMap>({
      apiVersion: "v1",
      kind: "Nothing",
      plural: "nothings",
      namespaced: true,
    });
    const unready = await startOperator(t, place, { identity: "unready", reconciler, type });
    assert.match(await unready.ask("/readyz"), /nothings/);
    unready.stop();
    await unready.ended;

    const leader = await startOperator(t, place, { identity: "leader", reconciler });
    await leader.logged.until((all) => all.includes("Leading"));
    const waiting = await startOperator(t, place, { identity: "waiting", reconciler });
    await waiting.logged.until((all) =>
      all.includes("Caches are filled, waiting for the leadership"),
    );
    waiting.stop();
    await waiting.ended;
    assert.match(
      await leader.ask("/metrics"),
      /^leader_election_master_status\{name="operator"\} 1$/m,
    );
  },
);
