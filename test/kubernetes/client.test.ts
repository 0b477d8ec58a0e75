import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNotFound,
  KubernetesError,
} from "../../src/kubernetes/kubernetes-error.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { openSharedCluster } from "../support/cluster/shared-cluster.ts";
import { namespaces, type Secret, secrets } from "../support/cluster/test-resources.ts";
import { connect, connectTestCluster, mountServiceAccount } from "./connect-test-cluster.ts";
import { startTcpRelay } from "../support/tcp-relay.ts";

const { pods, jobs, tokenReviews } = resources;

test(
  "an object is created, read, replaced, patched and deleted",
  { skip: clusterMissing },
  async () => {
    const { client, calls } = await connectTestCluster();
    const created = await client.create(secrets, secret("a", { x: "1" }));
    assert.equal(created.metadata.namespace, client.namespace);
    assert.equal(typeof created.metadata.creationTimestamp, "string");
    const replaced = await client.replace(secrets, { ...created, stringData: { x: "2" } });
    assert.equal(decoded(replaced)["x"], "2");
    const patched = await client.patch(secrets, "a", { metadata: { labels: { team: "vision" } } });
    assert.deepEqual(patched.metadata.labels, { team: "vision" });
    assert.deepEqual(await client.get(secrets, "a"), patched);
    await client.delete(secrets, "a", { propagationPolicy: "Background" });
    await assert.rejects(client.get(secrets, "a"), isNotFound);
    assert.deepEqual(
      calls.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`),
      [
        "create secrets 201",
        "update secrets 200",
        "patch secrets 200",
        "get secrets 200",
        "delete secrets 200",
        "get secrets 404",
      ],
    );
  },
);

test("status is a resource of its own", { skip: clusterMissing }, async () => {
  const { client, calls } = await connectTestCluster();
  await client.create(pods, pod("a"));
  const status = { phase: "Failed", reason: "Told" } as const;
  const patched = await client.patch(
    pods,
    "a",
    { status, spec: { activeDeadlineSeconds: 5 } },
    { subresource: "status" },
  );
  assert.equal(patched.status?.phase, "Failed");
  assert.equal(patched.spec?.activeDeadlineSeconds, undefined);
  assert.equal(calls.at(-1)?.resource, "pods/status");
});

test("lists come in pages of what the selector selects", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  for (const name of ["a", "b", "c", "d", "e"]) {
    await client.create(secrets, {
      ...secret(name),
      metadata: { name, labels: { odd: String(name !== "b") } },
    });
  }
  const pages = await Array.fromAsync(
    client.list(secrets, { labelSelector: "odd=true", limit: 2 }),
  );
  assert.deepEqual(
    pages.map((page) => page.items.map((item) => item.metadata.name)),
    [
      ["a", "c"],
      ["d", "e"],
    ],
  );
  assert.equal(pages[0]?.resourceVersion, pages[1]?.resourceVersion);
  const [named] = await Array.fromAsync(client.list(secrets, { fieldSelector: "metadata.name=b" }));
  assert.equal(named?.items.length, 1);
});

test("errors say what the API server said", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  await client.create(secrets, secret("a"));
  await assert.rejects(client.create(secrets, secret("a")), (error) => {
    assert.ok(error instanceof KubernetesError);
    assert.equal(error.message, 'Cannot create secrets: secrets "a" already exists');
    return isAlreadyExists(error) && !isConflict(error) && error.reason === "AlreadyExists";
  });
  const invalid = { ...pod("b"), spec: { containers: [] } };
  await assert.rejects(client.create(pods, invalid), (error) => {
    assert.ok(error instanceof KubernetesError);
    assert.deepEqual(error.causes[0]?.field, "spec.containers");
    return isInvalid(error);
  });
});

test("a write conflicts with a change that it has not seen", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const first = await client.create(secrets, secret("a"));
  const second = await client.patch(secrets, "a", { metadata: { labels: { changed: "yes" } } });
  await assert.rejects(client.replace(secrets, { ...first, stringData: { x: "1" } }), isConflict);
  const { resourceVersion } = first.metadata;
  const labels = { metadata: { labels: { late: "yes" } } };
  await assert.rejects(client.patch(secrets, "a", labels, { resourceVersion }), isConflict);
  const { labels: both } = (
    await client.patch(secrets, "a", labels, { resourceVersion: second.metadata.resourceVersion })
  ).metadata;
  assert.deepEqual(both, { changed: "yes", late: "yes" });
});

test(
  "a delete spares an object of the same name that is another one",
  { skip: clusterMissing },
  async () => {
    const { client } = await connectTestCluster();
    const { uid } = (await client.create(secrets, secret("a"))).metadata;
    await client.delete(secrets, "a", { propagationPolicy: "Background", uid });
    await client.create(secrets, secret("a"));
    await assert.rejects(
      client.delete(secrets, "a", { propagationPolicy: "Background", uid }),
      isConflict,
    );
    await client.get(secrets, "a");
  },
);

test(
  "deleting a Job in the foreground keeps it until its pods are gone",
  { skip: clusterMissing },
  async () => {
    const { client } = await connectTestCluster();
    const template = {
      spec: { restartPolicy: "Never", containers: [{ name: "work", image: "none" }] },
    };
    await client.create(jobs, { metadata: { name: "a" }, spec: { template } });
    await client.delete(jobs, "a", { propagationPolicy: "Foreground", gracePeriodSeconds: 0 });
    await assert.doesNotReject(async () => {
      const left = await client
        .get(jobs, "a")
        .catch((error: unknown) => assert.ok(isNotFound(error)));
      assert.ok(left === undefined || left.metadata.deletionTimestamp !== undefined);
    });
  },
);

test("a token is reviewed", { skip: clusterMissing }, async () => {
  const { cluster, client } = await connectTestCluster();
  const token = await cluster.kubectl([
    "create",
    "token",
    "default",
    "--audience",
    "ours",
    "-n",
    client.namespace,
  ]);
  const review = await client.review(tokenReviews, {
    spec: { token: token.trim(), audiences: ["ours"] },
  });
  assert.equal(review.status?.user?.username, `system:serviceaccount:${client.namespace}:default`);
  const refused = await client.review(tokenReviews, {
    spec: { token: token.trim(), audiences: ["other"] },
  });
  assert.notEqual(refused.status?.authenticated, true);
});

test("three hundred calls share one connection", { skip: clusterMissing }, async () => {
  const cluster = await openSharedCluster();
  await using relay = await startTcpRelay(cluster.url);
  const client = await connect(await mountServiceAccount(cluster, relay.port));
  let left = 300;
  const caller = async () => {
    while (left-- > 0) await client.get(namespaces, "default");
  };
  await Promise.all(Array.from({ length: 30 }, caller));
  assert.equal(relay.connections(), 1);
});

test("a token that was replaced on disk is read again", { skip: clusterMissing }, async () => {
  const cluster = await openSharedCluster();
  const source = await mountServiceAccount(cluster);
  await writeFile(join(source.directory, "token"), "expired");
  const client = await connect(source);
  await assert.rejects(client.get(namespaces, "default"), { status: 401, reason: "Unauthorized" });
  await writeFile(join(source.directory, "token"), cluster.adminToken);
  await client.get(namespaces, "default");
});

test("a call that is aborted throws the reason", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const reason = new Error("Nobody waits any more");
  await assert.rejects(
    client.get(namespaces, "default", { signal: AbortSignal.abort(reason) }),
    reason,
  );
  const stop = new AbortController();
  const { resourceVersion } = (await client.get(namespaces, "default")).metadata;
  const watch = client.watch(secrets, { resourceVersion, timeoutSeconds: 60, signal: stop.signal });
  const next = watch.next();
  setImmediate(() => stop.abort(reason));
  await once(stop.signal, "abort");
  await assert.rejects(next, reason);
});

function secret(name: string, stringData: Record<string, string> = {}): Secret {
  return { metadata: { name }, stringData };
}

function decoded({ data = {} }: Secret): Record<string, string> {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}

function pod(name: string) {
  return { metadata: { name }, spec: { containers: [{ name: "work", image: "none" }] } };
}
