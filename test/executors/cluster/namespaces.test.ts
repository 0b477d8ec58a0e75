import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Client, createClient } from "../../../src/client/create-client.ts";
import { routes } from "../../../src/contract/routes/routes.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../../src/contract/custom-resources/resource-labels.ts";
import { assignment } from "../../../src/contract/worker-protocol/messages.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import { startOperator } from "../../operator/start-operator.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startKwok } from "../../support/cluster/kwok.ts";
import { podEndStage } from "../../support/cluster/pod-end-stage.ts";
import { workerServiceAccount } from "../../support/cluster/pod-token.ts";
import { writeExternalModel } from "../../support/external-model.ts";
import { type ClusterService, startClusterService, untilRecorded } from "./cluster-service.ts";
import { playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const model = { source: "https://models.example/detector.onnx" };
const body = { model, target: "cpu" };
const spec = {
  ...body,
  kind: "compress",
  dryRun: false,
  cancel: false,
  suspend: false,
} as const;

suite("several namespaces and one installation", { skip: clusterMissing }, () => {
  let controlPlane: ControlPlane;
  const used = new AsyncDisposableStack();
  after(() => used.disposeAsync());
  before(async () => {
    if (clusterMissing !== false) return;
    controlPlane = used.use(await startControlPlane());
  });

  async function createNamespaces(count: number): Promise<string[]> {
    const names = Array.from({ length: count }, () => `team-${randomBytes(4).toString("hex")}`);
    const objects = names.flatMap((name) => [
      { apiVersion: "v1", kind: "Namespace", metadata: { name } },
      {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: workerServiceAccount, namespace: name },
      },
    ]);
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    await controlPlane.kubectl(["apply", "-f", "-"], list);
    return names;
  }

  /** A client with a token of the project. */
  async function projectClient(service: ClusterService, project: string) {
    const { client, baseUrl } = service;
    await client.call("createProject", { params: { project } });
    const { token } = await client.call("createToken", {
      body: { name: "test", scopes: ["jobs:read", "jobs:write", "models:write"], project },
    });
    return createClient({ routes, baseUrl, token });
  }

  async function listIds(client: Client): Promise<string[]> {
    const { jobs } = await client.call("listJobs", {});
    return jobs.map(({ id }) => id);
  }

  async function untilCompleted(api: KubernetesClient, name: string) {
    return until(`${api.namespace}/${name} is Completed`, async () => {
      // That of a job that was requested a moment ago may not be there yet.
      const resource = await api.get(compressionJobs, name).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
      return resource?.status?.status === "Completed" && resource.status;
    });
  }

  test("a resource with the id of another namespace's job is refused and changes nothing", async (t) => {
    const [own = "", foreign = ""] = await createNamespaces(2);
    const service = await startClusterService(t, {
      cluster: controlPlane,
      namespace: own,
      settings: { MOS_NAMESPACES: "*" },
    });
    const { api, client } = service;
    const elsewhere = api.inNamespace(foreign);
    const { id } = await client.call("startCompression", { body });
    const pod = await playPod(service, id);
    await pod.report({ type: "status", status: "Sharding" });
    const labels = { [resourceLabels.jobId]: id };
    const metadata = { name: id, labels, finalizers: [recordFinalizer] };
    await elsewhere.create(compressionJobs, { metadata, spec: { ...spec, cancel: true } });
    const forger = await playPod({ ...service, api: elsewhere, namespace: foreign }, id);
    const answer = await until("the pod is known", async () => {
      const reply = await forger.ask("");
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(answer.status, 401);
    const refused = await untilRecorded(elsewhere, id);
    assert.equal(refused.status, "Failed");
    assert.equal(refused.reason, "resource_invalid");
    assert.match(refused.message ?? "", /id .* is that of another job/);

    await pod.report(
      { type: "status", status: "Optimizing" },
      { type: "result", outcome: "Completed" },
    );
    assert.equal((await untilRecorded(api, id)).status, "Completed");
    assert.equal((await client.call("getJob", { params: { id } })).status, "Completed");
    await assert.rejects(
      (await projectClient(service, foreign)).call("getJob", { params: { id } }),
      /not_found/,
    );
  });

  test("a resource works only on uploads of its namespace's project", async (t) => {
    const [own = "", victim = "", mallory = ""] = await createNamespaces(3);
    const service = await startClusterService(t, {
      cluster: controlPlane,
      namespace: own,
      settings: { MOS_NAMESPACES: `${victim},${mallory}` },
    });
    const folder = await mkdtemp(join(tmpdir(), "upload-"));
    t.after(() => rm(folder, { recursive: true }));
    const uploader = await projectClient(service, victim);
    const { source } = await uploader.uploadModel(await writeExternalModel(folder));
    const metadata = { name: "detector" };
    const forged = service.api.inNamespace(mallory);
    for (const api of [forged, service.api.inNamespace(victim)]) {
      await api.create(compressionJobs, { metadata, spec: { ...spec, model: { source } } });
    }
    const refused = await untilRecorded(forged, metadata.name);
    assert.deepEqual([refused.status, refused.error?.code], ["Failed", "model_not_found"]);
    const stolen = await playPod({ ...service, api: forged, namespace: mallory }, refused.jobId);
    const answer = await until("the pod is known", async () => {
      const reply = await stolen.ask("");
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(answer.status, 409);

    const { items } = (await service.api.inNamespace(victim).list(compressionJobs).next())
      .value ?? {
      items: [],
    };
    const [id = ""] = items.map(resolveJobId);
    const pod = await playPod(
      { ...service, api: service.api.inNamespace(victim), namespace: victim },
      id,
    );
    const assigned = await until("the pod has an assignment", async () => {
      const reply = await pod.ask("");
      return reply.ok && reply;
    });
    assert.equal(assignment.parse(await assigned.json()).model.source, source);
  });

  test("with all namespaces served, the one named default says that it is not", async (t) => {
    const [own = ""] = await createNamespaces(1);
    const service = await startClusterService(t, {
      cluster: controlPlane,
      namespace: own,
      settings: { MOS_NAMESPACES: "*" },
    });
    const unserved = service.api.inNamespace("default");
    await unserved.create(compressionJobs, { metadata: { name: "first" }, spec });
    const { status, message = "" } = await untilRecorded(unserved, "first");
    assert.equal(status, "Failed");
    assert.match(message, /Namespace "default" has no project/);
    assert.deepEqual(await listIds(service.client), []);
  });

  test("50 namespaces are 50 projects, none of which sees another's jobs", async (t) => {
    // Only now: on its node the pods that other tests play would end.
    used.use(await startKwok(controlPlane, { nodes: 1, endStages: [podEndStage()] }));
    const [own = "", ...others] = await createNamespaces(50);
    const settings = { MOS_NAMESPACES: others.join(",") };
    const service = await startClusterService(t, {
      cluster: controlPlane,
      namespace: own,
      settings,
    });
    const operator = await startOperator({
      kubeconfig: controlPlane.kubeconfig,
      namespace: own,
      environment: { ...settings, MOS_WORKER_SERVICE_ACCOUNT: workerServiceAccount },
    });
    t.after(() => operator[Symbol.asyncDispose]());
    const { api } = service;
    const metadata = { name: "same", finalizers: [recordFinalizer] };
    for (const namespace of [own, ...others]) {
      await api.inNamespace(namespace).create(compressionJobs, { metadata, spec });
    }
    const ends = await Promise.all(
      [own, ...others].map((namespace) => untilCompleted(api.inNamespace(namespace), "same")),
    );
    const ids = new Set(ends.map(({ jobId }) => jobId));
    assert.equal(ids.size, 50);

    const [first = "", second = ""] = others;
    const [one, two] = [await projectClient(service, first), await projectClient(service, second)];
    assert.deepEqual(await listIds(one), [ends[1]?.jobId]);
    const started = await one.call("startCompression", { body });
    assert.deepEqual(await listIds(one), [started.id, ends[1]?.jobId]);
    await assert.rejects(two.call("getJob", { params: { id: started.id } }), /not_found/);
    await untilCompleted(api.inNamespace(first), started.id);
    await assert.rejects(api.get(compressionJobs, started.id), isNotFound);
    assert.deepEqual(await listIds(service.client), [ends[0]?.jobId]);
  });
});
