import assert from "node:assert/strict";
import test from "node:test";
import { assignment } from "../../../src/contract/worker-protocol/messages.ts";
import { resources } from "../../../src/kubernetes/resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { workerServiceAccount } from "../../support/cluster/pod-token.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { startClusterService } from "./cluster-service.ts";
import { logged, playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const options = { skip: clusterMissing };
const request = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };

test("a worker is known by the token of its pod, and by no other", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { client, cluster, namespace } = service;
  const { id } = await client.call("startCompression", { body: request });
  const { id: other } = await client.call("startCompression", { body: request });
  const pod = await playPod(service, id);
  const stranger = await playPod(service, other);

  const reply = await until("the pod is known", async () => {
    const answer = await pod.ask("");
    return answer.status === 503 ? undefined : answer;
  });
  const { attempt, part, model } = assignment.parse(await reply.json());
  assert.deepEqual(
    { attempt, part, source: model.source },
    { attempt: 1, part: null, source: request.model.source },
  );

  const bound = [
    "--bound-object-kind=Pod",
    `--bound-object-name=${pod.name}`,
    `--bound-object-uid=${pod.uid}`,
  ];
  const create = async (...args: string[]) =>
    (await cluster.kubectl(["create", "token", "-n", namespace, ...args])).trim();
  const audience = "--audience=model-optimization-worker";
  await cluster.kubectl(["create", "serviceaccount", "other", "-n", namespace]);
  const refused = {
    "of another job's pod": stranger.token,
    "for another audience": await create(workerServiceAccount, ...bound),
    "bound to no pod": await create(workerServiceAccount, audience),
    "of another service account": await create("other", audience),
    "of the administrator": cluster.adminToken,
    "for the REST interface": service.token,
    "of nobody": "token",
  };
  for (const [whose, token] of Object.entries(refused)) {
    assert.equal((await pod.ask("", {}, token)).status, 401, `A token ${whose} was not refused`);
  }
});

test(
  "a pod of a Job that is not the resource's own is refused, whatever its label says",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const { client, api } = service;
    const { id } = await client.call("startCompression", { body: request });
    const worker = await playPod(service, id);
    await worker.report({ type: "status", status: "Sharding" });
    const { metadata: other } = await api.create(resources.jobs, {
      metadata: { name: "forged" },
      spec: {
        suspend: true,
        template: {
          spec: { restartPolicy: "Never", containers: [{ name: "worker", image: "none" }] },
        },
      },
    });
    const workerJob = { name: other.name, uid: other.uid };
    const pod = await playPod(service, id, { name: `${id}-forged`, workerJob });
    const answer = await until("the pod is known", async () => {
      const reply = await pod.ask("");
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(answer.status, 401);
  },
);

test("events that are reported twice are recorded once", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id } = await service.client.call("startCompression", { body: request });
  const pod = await playPod(service, id);
  await pod.report({ type: "status", status: "Sharding" }, logged("one"));
  const again = [{ ...logged("one"), seq: 2, at: new Date().toISOString() }];
  const answer = await pod.ask("/events", {
    method: "POST",
    body: JSON.stringify({ events: again }),
  });
  assert.deepEqual(await answer.json(), { nextSeq: 3, cancelled: false });
  await pod.report(
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  );
  const lines: string[] = [];
  for await (const { text } of service.client.followLogs(id)) lines.push(text);
  assert.deepEqual(lines, ["one"]);
});

test("a pod that takes another's place begins the job anew", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id } = await service.client.call("startCompression", { body: request });
  const first = await playPod(service, id, { name: `${id}-a` });
  await first.report({ type: "status", status: "Sharding" }, logged("one"));
  await service.api.delete(resources.pods, first.name, {
    propagationPolicy: "Background",
    gracePeriodSeconds: 0,
  });
  const second = await playPod(service, id, { name: `${id}-b` });
  await second.report({ type: "status", status: "Sharding" }, logged("two"));
  const answer = await second.ask("");
  assert.equal(assignment.parse(await answer.json()).attempt, 2);
  assert.equal((await service.client.call("getJob", { params: { id } })).status, "Sharding");
});

test("a pod learns that its job has ended", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id } = await service.client.call("startCompression", { body: request });
  const pod = await playPod(service, id);
  await pod.report({
    type: "result",
    outcome: "Failed",
    error: { code: "model_invalid", message: "It is not a model" },
  });
  const late = await playPod(service, id, { name: `${id}-late` });
  const answer = await until("the pod is known", async () => {
    const reply = await late.ask("");
    return reply.status === 503 ? undefined : reply;
  });
  assert.equal(answer.status, 409);
});
