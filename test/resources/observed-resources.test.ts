import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  resourceLabels,
  sharesAnnotation,
} from "../../src/contract/custom-resources/resource-labels.ts";
import { workerContainer } from "../../src/contract/worker-protocol/messages.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { observedResources } from "../../src/resources/observed-resources.ts";
import type { MessageReader } from "../../src/kubernetes/protobuf/message-reader.ts";
import { decodeEvents, type KubernetesStatus } from "../../src/kubernetes/protobuf/responses.ts";
import {
  type KubernetesObject,
  resources,
  type ResourceType,
  type Stored,
} from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { secrets } from "../support/cluster/test-resources.ts";
import {
  connect,
  connectTestCluster,
  mountServiceAccount,
} from "../kubernetes/connect-test-cluster.ts";

const skip = clusterMissing;
const at = "2026-03-01T10:20:30Z";
const owner = {
  apiVersion: "v1",
  kind: "Secret",
  name: "a",
  controller: true,
  blockOwnerDeletion: true,
};
const labels = {
  [resourceLabels.jobId]: "a",
  [resourceLabels.step]: "",
  [resourceLabels.completionIndex]: "1",
};
const metadata = {
  name: "a",
  labels: { team: "vision", ...labels },
  annotations: { note: "größer", [sharesAnnotation]: "4" },
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
  ...["exitCode", "reason", "message", "startedAt", "finishedAt"].map(
    (name) => `terminated.${name}`,
  ),
];
const metadataFields = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  ...["kind", "name", "uid", "apiVersion", "controller"].map((name) => `ownerReferences.${name}`),
].map((name) => `metadata.${name}`);
const fieldsByResource = {
  jobs: [
    "spec.completions",
    "spec.activeDeadlineSeconds",
    "spec.suspend",
    "spec.template.spec.serviceAccountName",
    "status.startTime",
    ...conditionFields,
  ],
  pods: [
    "spec.nodeName",
    "spec.serviceAccountName",
    ...["phase", "reason", "message", "startTime", "containerStatuses.name"].map(
      (name) => `status.${name}`,
    ),
    ...stateFields.map((name) => `status.containerStatuses.state.${name}`),
    ...conditionFields,
  ],
  events: ["involvedObject.name", "involvedObject.uid", "message", "lastTimestamp", "eventTime"],
};

const readTexts = [
  ...Object.keys(labels).map((label) => ["metadata", "labels", label]),
  ["metadata", "annotations", sharesAnnotation],
];
/** Types of the conditions, and names of the containers. */
const readItems: readonly string[] = [
  "Complete",
  "Failed",
  "PodScheduled",
  "DisruptionTarget",
  workerContainer,
];

test("what is observed of jobs, pods and events is what their JSON says", { skip }, async () => {
  const { client } = await connectTestCluster();
  const { uid } = (await client.create(secrets, { metadata: { name: "a" } })).metadata;
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
  for (const state of containerStates) {
    await client.patch(
      resources.pods,
      "a",
      { status: podStatus(state) },
      { subresource: "status" },
    );
    await assertSame(client, "pods", resources.pods, observedResources.pods);
  }
  await assertSame(client, "events", resources.events, observedResources.events);
});

test("what is written is answered with what is observed", { skip }, async () => {
  const { client } = await connectTestCluster();
  const pod = { metadata: { name: "a" }, spec: podSpec };
  const made = await client.create(observedResources.pods, pod);
  assert.deepEqual(made.spec, { serviceAccountName: "default" });
  const changed = await client.patch(observedResources.pods, "a", { metadata: { labels } });
  assert.deepEqual([changed.metadata.uid, changed.metadata.labels], [made.metadata.uid, labels]);
  assert.equal((await client.get(observedResources.pods, "a")).metadata.uid, made.metadata.uid);
  await assert.rejects(client.create(observedResources.pods, pod), {
    status: 409,
    reason: "AlreadyExists",
  });
});

test("a watch of what is observed reports additions, changes and deletions", { skip }, async () => {
  const { client } = await connectTestCluster();
  const [page] = await Array.fromAsync(client.list(observedResources.pods));
  await client.create(resources.pods, { metadata: { name: "a" }, spec: podSpec });
  await client.patch(resources.pods, "a", { metadata: { labels } });
  await client.delete(resources.pods, "a", {
    propagationPolicy: "Background",
    gracePeriodSeconds: 0,
  });
  const watch = {
    resourceVersion: page?.resourceVersion ?? "",
    timeoutSeconds: 60,
    signal: new AbortController().signal,
  };
  const seen: string[] = [];
  for await (const event of client.watch(observedResources.pods, watch)) {
    if (event.type === "BOOKMARK") continue;
    const { name, labels } = event.object.metadata;
    seen.push(`${event.type} ${name} ${labels?.[resourceLabels.jobId] ?? "-"}`);
    if (event.type === "DELETED") break;
  }
  assert.deepEqual([seen.at(0), seen.at(-1)], ["ADDED a -", "DELETED a a"]);
  assert.ok(seen.includes("MODIFIED a a"));
});

test("a watch of what is observed says why it ends, and refuses an event that is too long", async () => {
  const status = field(3, "too old resource version") + field(4, "Expired") + number(6, 410);
  const content = `k8s\0${field(2, status)}`;
  const event = field(1, "ERROR") + field(2, field(1, content));
  const frame = Buffer.from(`${String.fromCharCode(0, 0, 0, event.length)}${event}`, "latin1");
  const type: MessageReader<object> = observedResources.pods.protobuf ?? assert.fail();
  const createError = ({ code, reason, message = "" }: KubernetesStatus) =>
    new Error(`${code} ${reason}: ${message}`);
  const read = (maxBytes: number) =>
    Array.fromAsync(decodeEvents(type, chunks(frame), { maxBytes, createError }));
  await assert.rejects(read(event.length), /^Error: 410 Expired: too old resource version$/);
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
  };
  await client.create(resources.jobs, {
    metadata: { ...metadata, ownerReferences: [{ ...owner, uid }] },
    spec: { ...spec, template },
  });
  const conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
  const status = {
    startTime: at,
    completionTime: at,
    succeeded: 2,
    uncountedTerminatedPods: {},
    conditions,
  };
  await client.patch(resources.jobs, "a", { status }, { subresource: "status" });
  await client.delete(resources.jobs, "a", { propagationPolicy: "Background" });
}

async function makePod(client: KubernetesClient, uid: string) {
  const containers = [workerContainer, "sidecar"].map((name) => ({ name, image: "none" }));
  await client.create(resources.pods, {
    metadata: { ...metadata, ownerReferences: [{ ...owner, uid }] },
    spec: { ...podSpec, containers, nodeName: "none" },
  });
}

function podStatus(state: (typeof containerStates)[number]) {
  const containerStatuses = [workerContainer, "sidecar"].map((name) => ({
    name,
    image: "none",
    imageID: "",
    ready: false,
    restartCount: 0,
    state,
  }));
  const conditions = ["PodScheduled", "Initialized"].map(condition);
  return {
    phase: "Running",
    reason: "Evicted",
    message: "Disk is full",
    startTime: at,
    conditions,
    containerStatuses,
  };
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
  return value < 128
    ? String.fromCharCode(value)
    : String.fromCharCode((value & 127) | 128) + varint(value >> 7);
}

const ended = {
  exitCode: 137,
  signal: 9,
  reason: "OOMKilled",
  message: "Last words",
  startedAt: at,
  finishedAt: at,
};
const containerStates = [
  { waiting: { reason: "ErrImagePull", message: "No such image" } },
  { running: { startedAt: at } },
  { terminated: { ...ended, containerID: "containerd://a" } },
];

const podSpec = {
  restartPolicy: "Never",
  serviceAccountName: "default",
  containers: [{ name: "work", image: "none" }],
};

async function assertSame<T extends KubernetesObject, O extends KubernetesObject>(
  client: KubernetesClient,
  name: keyof typeof fieldsByResource,
  inJson: ResourceType<T>,
  observed: ResourceType<O>,
) {
  const paths = [...metadataFields, ...fieldsByResource[name]].map((path) => path.split("."));
  const [whole, read] = [await onlyOne(client, inJson), await onlyOne(client, observed)];
  assert.deepEqual(read, picked(withoutUnread(whole), [...paths, ...readTexts]));
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
  const below = (name: string) =>
    paths.filter(([first]) => first === name).map((path) => path.slice(1));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      names.has(name) ? [[name, picked(inner, below(name))]] : [],
    ),
  );
}

/** Without the conditions and containers that nobody reads. */
function withoutUnread(object: object): unknown {
  const lists = ["conditions", "containerStatuses"];
  return JSON.parse(JSON.stringify(object), (key, value) =>
    lists.includes(key)
      ? value.filter((item: Item) => readItems.includes(item.type ?? item.name ?? ""))
      : value,
  );
}

interface Item {
  readonly type?: string;
  readonly name?: string;
}
