import assert from "node:assert/strict";
import { test } from "node:test";
import { isForbidden, KubernetesError } from "../../src/kubernetes/kubernetes-error.ts";
import type { Stored } from "../../src/kubernetes/resources.ts";
import type { ClusterCall } from "../../src/kubernetes/transport.ts";
import type { Cluster } from "../support/cluster/cluster.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { type Secret, secrets } from "../support/cluster/test-resources.ts";
import { connect, connectTestCluster, mountServiceAccount } from "./connect-test-cluster.ts";
import { observeSecrets, secret } from "./observe-secrets.ts";
import { startTcpRelay } from "../support/tcp-relay.ts";

const background = { propagationPolicy: "Background" } as const;

test("a reflector holds what is there and follows changes", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  await client.create(secrets, secret("a"));
  const { reflector, events, untilEvent } = observeSecrets(client);
  await reflector.synced;
  assert.deepEqual(events, ["added a"]);
  await client.create(secrets, secret("b"));
  await client.patch(secrets, "a", { metadata: { labels: { changed: "yes" } } });
  await client.delete(secrets, "b", background);
  await untilEvent("deleted b");
  assert.deepEqual(events, ["added a", "added b", "updated a", "deleted b"]);
  assert.deepEqual(
    Array.from(reflector.values(), (object) => object.metadata.labels),
    [{ changed: "yes" }],
  );
  assert.equal(reflector.get(`${client.namespace}/a`)?.metadata.managedFields, undefined);
  assert.ok(reflector.secondsSinceReceived < 60);
});

test(
  "a reflector reads every page and finds objects by index",
  { skip: clusterMissing },
  async () => {
    const { client, calls } = await connectTestCluster();
    const names = Array.from({ length: 101 }, (_, index) => `s${index}`);
    for (let start = 0; start < names.length; start += 50) {
      const some = names.slice(start, start + 50);
      await Promise.all(
        some.map((name) =>
          client.create(secrets, secret(name, { third: String(Number(name.slice(1)) % 3) })),
        ),
      );
    }
    const { reflector, untilEvent } = observeSecrets(client, {
      transform: onlyLabels,
      indexers: { third: ({ metadata }) => [metadata.labels?.["third"] ?? ""] },
    });
    await reflector.synced;
    assert.equal(calls.filter(({ verb }) => verb === "list").length, 3);
    assert.equal(reflector.size, 101);
    assert.equal(reflector.byIndex("third", "0").length, 34);
    await client.patch(secrets, "s0", { metadata: { labels: { third: "none" } } });
    await untilEvent("updated s0");
    assert.equal(reflector.byIndex("third", "0").length, 33);
    assert.deepEqual(reflector.byIndex("third", "none"), [reflector.get(`${client.namespace}/s0`)]);
    assert.equal("data" in (reflector.get(`${client.namespace}/s0`) ?? {}), false);
  },
);

test(
  "a change of what is not kept calls no handler, and its version is taken",
  { skip: clusterMissing },
  async () => {
    const { client } = await connectTestCluster();
    await client.create(secrets, secret("a"));
    const { reflector, events, untilEvent } = observeSecrets(client, { transform: onlyLabels });
    await reflector.synced;
    const { metadata } = await client.patch(secrets, "a", {
      metadata: { annotations: { note: "new" } },
    });
    await client.create(secrets, secret("b"));
    await untilEvent("added b");
    assert.deepEqual(events, ["added a", "added b"]);
    assert.equal(
      reflector.get(`${client.namespace}/a`)?.metadata.resourceVersion,
      metadata.resourceVersion,
    );
  },
);

test(
  "an object that leaves the selector is gone for the reflector",
  { skip: clusterMissing },
  async () => {
    const { client } = await connectTestCluster();
    await client.create(secrets, secret("a", { ours: "yes" }));
    await client.create(secrets, secret("b"));
    const { reflector, events, untilEvent } = observeSecrets(client, { labelSelector: "ours=yes" });
    await reflector.synced;
    await client.patch(secrets, "a", { metadata: { labels: { ours: "no" } } });
    await client.patch(secrets, "b", { metadata: { labels: { ours: "yes" } } });
    await untilEvent("added b");
    assert.deepEqual(events, ["added a", "deleted a", "added b"]);
  },
);

test("a handler that throws does not end the watch", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const { reflector, errors, untilEvent } = observeSecrets(client, {
    onAdded({ metadata }) {
      throw new Error(`Cannot take ${metadata.name}`);
    },
  });
  await reflector.synced;
  await client.create(secrets, secret("a"));
  await client.delete(secrets, "a", background);
  await untilEvent("deleted a");
  assert.deepEqual(errors, [new Error("Cannot take a")]);
});

test("a cut connection costs no event and no second list", { skip: clusterMissing }, async () => {
  const { cluster, client } = await connectTestCluster();
  await using relay = await startTcpRelay(cluster.url);
  const calls: ClusterCall[] = [];
  const cutClient = await connect(await mountServiceAccount(cluster, relay.port), {
    namespace: client.namespace,
    onCall: (call) => void calls.push(call),
  });
  const { reflector, events, untilEvent } = observeSecrets(cutClient);
  await reflector.synced;
  for (const name of ["a", "b", "c"]) {
    relay.cut();
    await client.create(secrets, secret(name));
    await untilEvent(`added ${name}`);
  }
  relay.interrupt();
  await client.delete(secrets, "a", background);
  await client.delete(secrets, "b", background);
  await client.create(secrets, secret("b"));
  relay.restore();
  await untilEvent("added b", 2);
  const changes = events.filter((event) => event !== "error");
  assert.deepEqual(changes, ["added a", "added b", "added c", "deleted a", "deleted b", "added b"]);
  assert.equal(calls.filter(({ verb }) => verb === "list").length, 1);
});

test(
  "a reflector that may not list goes on trying until it may",
  { skip: clusterMissing },
  async () => {
    const { cluster, client } = await connectTestCluster();
    const { namespace } = client;
    const { errors, reflector, untilEvent } = observeSecrets(
      await clientOfDefaultAccount(cluster, namespace),
    );
    await untilEvent("error");
    assert.ok(errors[0] instanceof KubernetesError);
    assert.equal(errors[0].status, 403);
    assert.match(errors[0].message, /^Cannot list secrets: secrets is forbidden: User/);
    assert.equal(reflector.secondsSinceReceived, Infinity);
    const role = ["--clusterrole=admin", `--serviceaccount=${namespace}:default`];
    await cluster.kubectl(["create", "rolebinding", "all", "-n", namespace, ...role]);
    await reflector.synced;
  },
);

test(
  "nobody waits longer than agreed for a list that is forbidden",
  { skip: clusterMissing },
  async () => {
    const { cluster, client } = await connectTestCluster();
    const account = await clientOfDefaultAccount(cluster, client.namespace);
    const { errors, reflector } = observeSecrets(account, { forbiddenLimitMs: 1 });
    await reflector.synced;
    assert.ok(isForbidden(errors[0]));
    assert.equal(reflector.size, 0);
  },
);

/** A client that may do nothing. */
async function clientOfDefaultAccount(cluster: Cluster, namespace: string) {
  const token = await cluster.kubectl(["create", "token", "default", "-n", namespace]);
  const access = { ...cluster, adminToken: token.trim() };
  return connect(await mountServiceAccount(access), { namespace });
}

test(
  "a stopped reflector and a closed client leave nothing behind",
  { skip: clusterMissing },
  async () => {
    const { cluster, client } = await connectTestCluster();
    const own = await connect({ kubeconfig: cluster.kubeconfig }, { namespace: client.namespace });
    const { reflector, untilEvent } = observeSecrets(own);
    await reflector.synced;
    await own.create(secrets, secret("a"));
    await untilEvent("added a");
    assert.ok(openHandles().includes("TCPSocketWrap"));
    await reflector.stop();
    await own.close();
    assert.deepEqual(openHandles(), []);
  },
);

test(
  "a reflector that is stopped early says that it never synced",
  { skip: clusterMissing },
  async () => {
    const { client } = await connectTestCluster();
    const { reflector } = observeSecrets(client);
    const stopped = assert.rejects(
      reflector.synced,
      /^Error: The reflector of secrets was stopped before it had synced$/,
    );
    await reflector.stop();
    await stopped;
  },
);

function openHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((kind) => kind === "TCPSocketWrap" || kind === "Timeout");
}

function onlyLabels({ metadata }: Stored<Secret>): Stored<Secret> {
  const { labels = {}, annotations: _, ...kept } = metadata;
  return { metadata: { ...kept, labels } };
}
