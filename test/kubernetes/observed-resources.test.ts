import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { observedResources } from "../../src/kubernetes/observed-resources.ts";
import type { Message } from "../../src/kubernetes/protobuf.ts";
import { decodeEvents } from "../../src/kubernetes/protobuf-answers.ts";
import { type KubernetesObject, resources, type ResourceType, type Stored } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../cluster/cluster-missing.ts";
import { connect, connectTestCluster, mountServiceAccount } from "./connect-test-cluster.ts";

const skip = clusterMissing;
const at = "2026-03-01T10:20:30Z";
const owner = { apiVersion: "v1", kind: "Secret", name: "a", controller: true, blockOwnerDeletion: true };
const metadata = {
  name: "a",
  labels: { team: "vision", empty: "" },
  annotations: { note: "größer" },
  finalizers: ["modeloptimization.dev/test"],
};
const condition = (type: string) => ({
  type,
  status: "True",
  reason: "Seen",
  message: `${type} is so`,
  lastTransitionTime: at,
});

/** Fields that are read of each resource, as paths in its JSON. */
const conditionFields = ["type", "status", "lastTransitionTime", "reason", "message"].map(
  (name) => `status.conditions.${name}`,
);
const stateFields = [
  "waiting.reason",
  "waiting.message",
  "running.startedAt",
  ...["exitCode", "signal", "reason", "message", "startedAt", "finishedAt", "containerID"].map(
    (name) => `terminated.${name}`,
  ),
];
const metadataFields = [
  "name",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "labels",
  "annotations",
  ...["kind", "name", "uid", "apiVersion", "controller", "blockOwnerDeletion"].map((name) => `ownerReferences.${name}`),
].map((name) => `metadata.${name}`);
const fieldsOf = {
  jobs: ["spec.completions", "spec.suspend", "spec.ttlSecondsAfterFinished", "status.startTime", ...conditionFields],
  pods: [
    "spec.nodeName",
    "spec.serviceAccountName",
    ...["phase", "reason", "message", "startTime", "containerStatuses.name"].map((name) => `status.${name}`),
    ...stateFields.map((name) => `status.containerStatuses.state.${name}`),
    ...conditionFields,
  ],
  events: ["involvedObject.name", "involvedObject.uid", "message", "lastTimestamp", "eventTime"],
};

test("what is observed of jobs, pods and events is what their JSON says", { skip }, async () => {
  const { client } = await connectTestCluster();
  const { uid } = (await client.create(resources.secrets, { metadata: { name: "a" } })).metadata;
  await makeJob(client, uid);
  await makePod(client, uid);
  await client.create(resources.events, {
    metadata: { name: "a" },
    involvedObject: { kind: "Pod", name: "a", uid, namespace: client.namespace },
    type: "Warning",
    reason: "Odd",
    message: "Something is odd",
    lastTimestamp: at,
    eventTime: "2026-03-01T10:20:30.000123Z",
    action: "Look",
    reportingComponent: "test",
    reportingInstance: "test",
  });
  await assertSame(client, "jobs", resources.jobs, observedResources.jobs);
  await assertSame(client, "pods", resources.pods, observedResources.pods);
  await assertSame(client, "events", resources.events, observedResources.events);
});

test("a watch of what is observed tells of additions, changes and deletions", { skip }, async () => {
  const { client } = await connectTestCluster();
  const [page] = await Array.fromAsync(client.list(observedResources.pods));
  await client.create(resources.pods, { metadata: { name: "a" }, spec: podSpec });
  await client.patch(resources.pods, "a", { metadata: { labels: { team: "vision" } } });
  await client.delete(resources.pods, "a", { propagationPolicy: "Background", gracePeriodSeconds: 0 });
  const watch = {
    resourceVersion: page?.resourceVersion ?? "",
    timeoutSeconds: 60,
    signal: new AbortController().signal,
  };
  const seen: string[] = [];
  for await (const event of client.watch(observedResources.pods, watch)) {
    if (event.type === "BOOKMARK") continue;
    seen.push(`${event.type} ${event.object.metadata.name} ${event.object.metadata.labels?.["team"] ?? "-"}`);
    if (event.type === "DELETED") break;
  }
  assert.deepEqual([seen.at(0), seen.at(-1)], ["ADDED a -", "DELETED a vision"]);
  assert.ok(seen.includes("MODIFIED a vision"));
});

test("a watch of what is observed says why it ends, and refuses an event that is too long", async () => {
  const status = field(3, "too old resource version") + field(4, "Expired") + number(6, 410);
  const content = `k8s\0${field(2, status)}`;
  const event = field(1, "ERROR") + field(2, field(1, content));
  const frame = Buffer.from(`${String.fromCharCode(0, 0, 0, event.length)}${event}`, "latin1");
  const type: Message<object> = observedResources.pods.protobuf ?? assert.fail();
  const read = (maxBytes: number) => Array.fromAsync(decodeEvents(type, chunks(frame), maxBytes));
  const object = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" };
  assert.deepEqual(await read(event.length), [{ type: "ERROR", object }]);
  await assert.rejects(read(event.length - 1), /longer than/);
});

test("why what is to be observed is refused is said as ever", { skip }, async () => {
  const { cluster, client } = await connectTestCluster();
  const source = await mountServiceAccount(cluster);
  const token = await cluster.kubectl(["create", "token", "default", "-n", client.namespace]);
  await writeFile(join(source.directory, "token"), token.trim());
  const stranger = await connect(source);
  for (const list of [stranger.list(resources.pods), stranger.list(observedResources.pods)]) {
    await assert.rejects(Array.fromAsync(list), {
      status: 403,
      reason: "Forbidden",
      message: /cannot list resource "pods"/,
    });
  }
});

/** A Job that no controller takes for its own. */
async function makeJob(client: KubernetesClient, uid: string) {
  const template = { spec: podSpec };
  const spec = {
    managedBy: "test.example/nobody",
    completions: 2,
    parallelism: 2,
    suspend: false,
    ttlSecondsAfterFinished: 60,
  };
  await client.create(resources.jobs, {
    metadata: { ...metadata, ownerReferences: [{ ...owner, uid }] },
    spec: { ...spec, template },
  });
  const conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
  const status = { startTime: at, completionTime: at, succeeded: 2, uncountedTerminatedPods: {}, conditions };
  await client.patch(resources.jobs, "a", { status }, { subresource: "status" });
  await client.delete(resources.jobs, "a", { propagationPolicy: "Background" });
}

async function makePod(client: KubernetesClient, uid: string) {
  const containers = ["waits", "runs", "has-ended"].map((name) => ({ name, image: "none" }));
  await client.create(resources.pods, {
    metadata: { ...metadata, ownerReferences: [{ ...owner, uid }] },
    spec: { ...podSpec, containers, nodeName: "none" },
  });
  const ended = { exitCode: 137, signal: 9, reason: "OOMKilled", message: "Last words", startedAt: at, finishedAt: at };
  const states = [
    { waiting: { reason: "ErrImagePull", message: "No such image" } },
    { running: { startedAt: at } },
    { terminated: { ...ended, containerID: "containerd://a" } },
  ];
  const containerStatuses = containers.map(({ name, image }, index) => {
    const status = { name, image, imageID: "", ready: false, restartCount: 0 };
    return { ...status, state: states[index] ?? {} };
  });
  const conditions = [condition("PodScheduled"), condition("Initialized")];
  const status = {
    phase: "Running",
    reason: "Evicted",
    message: "Disk is full",
    startTime: at,
    conditions,
    containerStatuses,
  };
  await client.patch(resources.pods, "a", { status }, { subresource: "status" });
}

async function* chunks(bytes: Buffer) {
  yield bytes;
}

/** A field of a protobuf message, as bytes that are characters. */
function field(id: number, content: string): string {
  return varint((id << 3) | 2) + varint(content.length) + content;
}

function number(id: number, value: number): string {
  return varint(id << 3) + varint(value);
}

function varint(value: number): string {
  return value < 128 ? String.fromCharCode(value) : String.fromCharCode((value & 127) | 128) + varint(value >> 7);
}

const podSpec = {
  restartPolicy: "Never",
  serviceAccountName: "default",
  containers: [{ name: "work", image: "none" }],
};

async function assertSame<T extends KubernetesObject, O extends KubernetesObject>(
  client: KubernetesClient,
  name: keyof typeof fieldsOf,
  inJson: ResourceType<T>,
  observed: ResourceType<O>,
) {
  const fields = [...metadataFields, ...fieldsOf[name]];
  const [whole, read] = [await onlyOne(client, inJson), await onlyOne(client, observed)];
  assert.deepEqual(
    read,
    picked(
      whole,
      fields.map((path) => path.split(".")),
    ),
  );
}

async function onlyOne<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
): Promise<Stored<T>> {
  const [page] = await Array.fromAsync(client.list(type));
  const [object] = page?.items ?? [];
  assert.ok(object !== undefined && page?.items.length === 1);
  return object;
}

/** What lies at the paths, which go through lists as if these were their items. */
function picked(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return value;
  if (Array.isArray(value)) return value.map((item) => picked(item, paths));
  if (typeof value !== "object" || value === null) return value;
  const names = new Set(paths.map(([first]) => first));
  const below = (name: string) => paths.filter(([first]) => first === name).map((path) => path.slice(1));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (names.has(name) ? [[name, picked(inner, below(name))]] : [])),
  );
}
