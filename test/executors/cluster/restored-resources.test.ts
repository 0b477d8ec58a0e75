import assert from "node:assert/strict";
import test from "node:test";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../../src/resources/custom-resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { type ClusterService, startClusterService, untilRecorded } from "./cluster-service.ts";
import { playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const options = { skip: clusterMissing };
const body = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };

/** A job that was started over REST, with its resource as a backup has it. */
async function startJob({ client, api }: ClusterService) {
  const { id } = await client.call("startCompression", { body });
  const resource = await until("the job is a resource", () =>
    api.get(compressionJobs, id).catch(() => undefined),
  );
  return { id, resource };
}

/** Deletes the resource, and creates it again with another uid and without a status. */
async function restore(
  { api }: ClusterService,
  { metadata, spec }: Stored<CompressionJobObject>,
): Promise<void> {
  const { name, labels } = metadata;
  await api.patch(compressionJobs, name, { metadata: { finalizers: null } });
  await api.delete(compressionJobs, name, { propagationPolicy: "Background" });
  await until("the resource is gone", () =>
    api.get(compressionJobs, name).then(() => false, isNotFound),
  );
  const restored = { name, labels: { ...labels }, finalizers: [recordFinalizer] };
  await api.create(compressionJobs, { metadata: restored, spec });
}

test("a restored resource of a job that has ended takes its result", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id, resource } = await startJob(service);
  const pod = await playPod(service, id);
  await pod.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  );
  await untilRecorded(service.api, id);
  await restore(service, resource);
  const { status, at } = await untilRecorded(service.api, id);
  const job = await service.client.call("getJob", { params: { id } });
  assert.deepEqual([status, at], ["Completed", job.finishedAt]);
});

test("a restored resource of a job that runs goes on with it", options, async (t) => {
  const first = await startClusterService(t, await createTestNamespace());
  const { id, resource } = await startJob(first);
  await first.stop("SIGTERM");
  await restore(first, resource);
  const service = await first.again();
  const pod = await playPod(service, id);
  await pod.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  );
  assert.equal((await untilRecorded(service.api, id)).status, "Completed");
});
