import assert from "node:assert/strict";
import test from "node:test";
import { PodAuthentication } from "../../../src/executors/cluster/pod-authentication.ts";
import { PodLogCollector } from "../../../src/executors/cluster/pod-log-collector.ts";
import { UnreadLogs } from "../../../src/executors/cluster/unread-logs.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import { answer, connectStandIn } from "../../kubernetes/stand-in-api-server.ts";
import { openTestRecords } from "../../records/new-jobs.ts";

const start = Date.parse("2026-01-01T00:00:00Z");

/** A token that says that it is a pod's, with a signature that no API server made. */
function forge(podName: string, podUid = "made-up", secondsLeft = 3600): string {
  const pod = { name: podName, uid: podUid };
  const claims = {
    exp: start / 1000 + secondsLeft,
    "kubernetes.io": { namespace: "ours", pod },
  };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
}

/** An authentication whose API server refuses every token, and knows one pod. */
async function startAuthentication() {
  const { client, seen } = await connectStandIn(answer(201, { status: { authenticated: false } }));
  const records = await openTestRecords();
  const clock = { now: start };
  const { namespace } = client;
  const known = { name: "known", namespace, uid: "1", resourceVersion: "1", creationTimestamp: "" };
  const workers = new PodAuthentication({
    client,
    namespaces: { own: client.namespace, others: [] },
    records,
    pods: { get: (key) => (key === objectKey(known) ? { metadata: known } : undefined) },
    logCollector: new PodLogCollector({
      records,
      client,
      enqueue: () => {},
      unread: new UnreadLogs(),
      isStored: async () => true,
      reportedFiles: () => new Set(),
      countLoss: () => {},
      log: () => {},
    }),
    recordEndedPods: async () => {},
    serviceAccount: "worker",
    now: () => new Date(clock.now),
  });
  const refusal = async (token: string): Promise<unknown> =>
    workers.authenticate(token, "job-1").then(
      () => "none",
      (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
    );
  return { seen, clock, refusal };
}

test("what is not a pod's token is refused without the API server", async () => {
  const { seen, refusal } = await startAuthentication();
  const claims = Buffer.from('{"exp": 1e12}').toString("base64url");
  const tokens = ["token", "a.b.c", `e30.${claims}.x`, "e30.bnVsbA.x", forge("known", "1", -1)];
  for (const token of tokens) assert.equal(await refusal(token), "unauthorized", token);
  assert.deepEqual(seen, []);
});

test("a token that the cluster refused is asked for again only seconds later", async () => {
  const { seen, clock, refusal } = await startAuthentication();
  for (let i = 0; i < 10; i++) assert.equal(await refusal(forge("known", "1")), "unauthorized");
  assert.equal(seen.length, 1);
  clock.now += 5_000;
  assert.equal(await refusal(forge("known", "1")), "unauthorized");
  assert.equal(seen.length, 2);
});

test("a flood of made-up tokens costs the API server little, and no worker its place", async () => {
  const { seen, clock, refusal } = await startAuthentication();
  const answers = [];
  for (let i = 0; i < 100; i++) answers.push(await refusal(forge(`pod-${i}`)));
  assert.equal(seen.length, 20);
  assert.deepEqual(
    [answers[19], answers[20], answers[99]],
    ["unauthorized", "unavailable", "unavailable"],
  );
  assert.equal(await refusal(forge("known", "1")), "unauthorized");
  assert.equal(seen.length, 21);
  clock.now += 1000;
  assert.equal(await refusal(forge("pod-100")), "unauthorized");
});
