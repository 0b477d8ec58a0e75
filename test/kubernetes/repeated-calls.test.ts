import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists } from "../../src/kubernetes/kubernetes-error.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { secrets } from "../support/cluster/test-resources.ts";
import { connect, connectTestCluster, mountServiceAccount } from "./connect-test-cluster.ts";
import { observeSecrets, secret } from "./observe-secrets.ts";
import { answer, breakOff, connectStandIn, refusal } from "./stand-in-api-server.ts";
import { startTcpRelay } from "../support/tcp-relay.ts";

const path = "/api/v1/namespaces/ours/secrets";
const stored = {
  metadata: {
    name: "a",
    uid: "1",
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
  },
};
const tooMany = refusal(429, "TooManyRequests", { "retry-after": "1" });

test("a call that comes too soon is made again when the server wants it", async () => {
  const { client, seen } = await connectStandIn(tooMany, answer(201, stored));
  assert.deepEqual(await client.create(secrets, { metadata: { generateName: "a-" } }), stored);
  assert.deepEqual(seen, [`POST ${path}`, `POST ${path}`]);
});

test("a call does not wait beyond its deadline", async () => {
  const later = refusal(429, "TooManyRequests", { "retry-after": "60" });
  const { client, seen } = await connectStandIn(later);
  await assert.rejects(client.get(secrets, "a", { deadlineMs: 50_000 }), {
    status: 429,
    retryAfterSeconds: 60,
  });
  assert.equal(seen.length, 1);
});

test("reading goes on through errors, lost and cut answers", async () => {
  const failures = [
    refusal(500, "InternalError"),
    refusal(503, "ServiceUnavailable"),
    breakOff(),
    breakOff('{"meta'),
  ];
  const { client, seen } = await connectStandIn(...failures, answer(200, stored));
  assert.deepEqual(await client.get(secrets, "a"), stored);
  assert.equal(seen.length, 5);
});

test("a named create whose answer was lost is made again and says that the object exists", async () => {
  const { client, seen } = await connectStandIn(breakOff(), refusal(409, "AlreadyExists"));
  await assert.rejects(client.create(secrets, { metadata: { name: "a" } }), isAlreadyExists);
  assert.equal(seen.length, 2);
});

test("a create whose name the server would make is never made twice", async () => {
  const { client, seen } = await connectStandIn(breakOff());
  await assert.rejects(client.create(secrets, { metadata: { generateName: "a-" } }), {
    status: undefined,
    reason: "ConnectionFailed",
    message: /^Cannot create secrets: /,
  });
  assert.equal(seen.length, 1);
});

test("errors that stay are thrown as the server sent them", async () => {
  const { client } = await connectStandIn((_, response) =>
    response.writeHead(400).end("a proxy says no"),
  );
  await assert.rejects(client.get(secrets, "a"), {
    status: 400,
    message: 'Cannot get secrets "a": a proxy says no',
  });
});

test("a server that never answers is given up at the deadline", async () => {
  const { client } = await connectStandIn(() => {});
  await assert.rejects(client.get(secrets, "a", { deadlineMs: 400 }), { status: undefined });
});

test("a closed client refuses calls at once", async () => {
  const { client, seen } = await connectStandIn(answer(200, stored));
  await client.close();
  await assert.rejects(client.get(secrets, "a"), { reason: "ConnectionFailed" });
  assert.deepEqual(seen, []);
});

test(
  "a connection that has gone silent is replaced, for calls and for watches",
  { skip: clusterMissing },
  async () => {
    const { cluster, client: direct } = await connectTestCluster();
    await using relay = await startTcpRelay(cluster.url);
    const source = await mountServiceAccount(cluster, relay.port);
    const client = await connect(source, { namespace: direct.namespace });
    const { reflector, untilEvent } = observeSecrets(client);
    await reflector.synced;
    relay.swallow();
    await direct.create(secrets, secret("a"));
    await client.get(secrets, "a", { deadlineMs: 9_000 });
    await untilEvent("added a");
  },
);
