import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { startHealthServer } from "../../src/controller-runtime/health-server.ts";
import { createRuntimeMetrics } from "../../src/controller-runtime/metrics.ts";
import { watchResource } from "../../src/controller-runtime/watch-resource.ts";
import { connectCluster } from "../../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { type KubernetesObject, resourceType } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { connectTestCluster, mountServiceAccount } from "../kubernetes/connect-test-cluster.ts";
import { type ConfigMap, configMaps, notRootCertificate } from "./config-maps.ts";
import { createHappenings } from "./happenings.ts";
import { ChangeSignal } from "../support/until.ts";

const skip = clusterMissing;

function watch(t: TestContext, client: KubernetesClient, type: typeof configMaps) {
  const logged = createHappenings();
  const log = (level: string, message: string) => logged.record(`${level}: ${message}`);
  const watched = watchResource<ConfigMap>({
    client,
    type,
    fieldSelector: notRootCertificate,
    log,
  });
  t.after(() => watched.stop());
  return { watched, logged };
}

async function startProbes(t: TestContext, watched: ReturnType<typeof watch>["watched"]) {
  const server = await startHealthServer({
    host: "127.0.0.1",
    port: 0,
    watched: [watched],
    metrics: createRuntimeMetrics(),
  });
  t.after(() => server.close());
  return async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return `${answer.status} ${await answer.text()}`;
  };
}

test(
  "a kind that is not installed is reported with what to do, and watched once it is",
  { skip },
  async (t) => {
    const { cluster, client } = await connectTestCluster();
    const begin = performance.now();
    const group = `${client.namespace}.example.com`;
    const widgets = resourceType<KubernetesObject>({
      apiVersion: `${group}/v1`,
      kind: "Widget",
      plural: "widgets",
      namespaced: true,
    });
    const { watched, logged } = watch(t, client, widgets);
    const ask = await startProbes(t, watched);
    await logged.until((all) => all.length > 0);
    const advice = `apply the CustomResourceDefinition widgets.${group}`;
    assert.match(
      logged.all[0] ?? "",
      /^error: Cannot list widgets: .* The kind Widget is not installed: /,
    );
    assert.ok(watched.problem?.endsWith(advice), watched.problem);
    const unready = await ask("/readyz");
    assert.ok(
      unready.startsWith("503 Cannot list widgets") && unready.trim().endsWith(advice),
      unready,
    );
    assert.equal(await ask("/healthz"), "200 ok\n");

    t.after(() => cluster.kubectl(["delete", "crd", `widgets.${group}`]));
    const define = (...versions: readonly string[]) =>
      cluster.kubectl(["apply", "--filename=-"], definition(group, versions));
    await define("v1beta1");
    // A definition without any condition yet is an error to a wait for one of them.
    for (const sign of ["jsonpath={.status.conditions}", "condition=Established"]) {
      await cluster.kubectl(["wait", `--for=${sign}`, `crd/widgets.${group}`, "--timeout=240s"]);
    }
    assert.ok((await ask("/readyz")).trim().endsWith(advice), "only v1 counts");
    await define("v1beta1", "v1");
    await watched.synced;
    assert.equal(watched.problem, undefined);
    assert.equal(await ask("/readyz"), "200 ok\n");
    const minutes = Math.ceil((performance.now() - begin) / 60_000);
    assert.ok(
      logged.all.length <= new Set(logged.all).size * minutes,
      "one problem is logged once a minute",
    );
  },
);

/** The last version is stored. */
function definition(group: string, names: readonly string[]): string {
  const schema = { openAPIV3Schema: { type: "object" } };
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      names: { kind: "Widget", plural: "widgets" },
      scope: "Namespaced",
      versions: names.map((name) => ({
        name,
        served: true,
        storage: name === names.at(-1),
        schema,
      })),
    },
  });
}

test(
  "a service account without the right learns which one it needs, and served once it has it",
  { skip },
  async (t) => {
    const { cluster, client } = await connectTestCluster();
    const { namespace } = client;
    const token = await cluster.kubectl(["create", "token", "default", "-n", namespace]);
    const pod = await mountServiceAccount({ ...cluster, adminToken: token.trim() });
    const weak = await connectCluster(pod, { namespace });
    t.after(() => weak.close());
    const { watched, logged } = watch(t, weak, configMaps);
    const ask = await startProbes(t, watched);
    await logged.until((all) => all.length > 0);
    const advice = `Grant the service account a Role in namespace "${namespace}" with apiGroups [""], resources ["configmaps"]`;
    assert.ok(watched.problem?.includes(advice), watched.problem);
    assert.ok((await ask("/readyz")).includes(advice));

    const subject = `--serviceaccount=${namespace}:default`;
    await cluster.kubectl([
      "create",
      "role",
      "reader",
      "--verb=list,watch",
      "--resource=configmaps",
      "-n",
      namespace,
    ]);
    await cluster.kubectl([
      "create",
      "rolebinding",
      "reader",
      "--role=reader",
      subject,
      "-n",
      namespace,
    ]);
    await watched.synced;
    await client.create(configMaps, { metadata: { name: "a" } });
    await untilSeen(watched, () => watched.cache.get(`${client.namespace}/a`) !== undefined);
    assert.equal(watched.problem, undefined);
  },
);

async function untilSeen(
  watched: ReturnType<typeof watch>["watched"],
  isSeen: () => boolean,
): Promise<void> {
  const changed = new ChangeSignal();
  const unsubscribe = watched.onChange(changed.notify);
  await changed.until(`the cache fits ${String(isSeen)}`, isSeen).finally(unsubscribe);
}

test(
  "a cache says whether it has seen a write, a later one, or the end of the object",
  { skip },
  async (t) => {
    const { client } = await connectTestCluster();
    const { watched } = watch(t, client, configMaps);
    await watched.synced;
    const made = await client.create(configMaps, { metadata: { name: "a" } });
    await untilSeen(watched, () => watched.hasSeen(made));
    const changed = await client.patch(configMaps, "a", { data: { size: "1" } });
    await untilSeen(watched, () => watched.hasSeen(changed));
    assert.ok(watched.hasSeen(made));
    const later = {
      ...changed,
      metadata: { ...changed.metadata, resourceVersion: `9${changed.metadata.resourceVersion}` },
    };
    assert.ok(!watched.hasSeen(later));
    await client.delete(configMaps, "a", { propagationPolicy: "Background" });
    await untilSeen(watched, () => watched.cache.get(`${client.namespace}/a`) === undefined);
    assert.ok(watched.hasSeen(later));
  },
);
