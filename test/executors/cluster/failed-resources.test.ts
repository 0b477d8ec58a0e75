import assert from "node:assert/strict";
import test from "node:test";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import { batches, compressionJobs } from "../../../src/resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../../src/resources/job-identity.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { until } from "../../support/until.ts";
import { type ClusterService, startClusterService, untilRecorded } from "./cluster-service.ts";
import { logged, playPod } from "./played-pod.ts";

const options = { skip: clusterMissing };
const model = { source: "https://models.example/detector.onnx" };

function untilJob({ client }: ClusterService, id: string, status: JobStatus) {
  return until(`job "${id}" is ${status}`, async () => {
    const found = await client.call("getJob", { params: { id } }).catch(() => undefined);
    return found?.status === status && found;
  });
}

test("a resource that is deleted after its job failed leaves the failure", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { api } = service;
  const made = await api.create(compressionJobs, {
    metadata: { name: "failed", finalizers: [recordFinalizer] },
    spec: { kind: "compress", model, target: "cpu", dryRun: false, cancel: false, suspend: false },
  });
  const id = resolveJobId(made);
  await untilJob(service, id, "Pending");
  const pod = await playPod(service, id);
  await pod.report({ type: "status", status: "Sharding" }, logged("one"));
  const error = { code: "out_of_memory", message: "The worker ran out of memory" } as const;
  const status = { status: "Failed" as const, error };
  await api.patch(compressionJobs, "failed", { status }, { subresource: "status" });
  await api.delete(compressionJobs, "failed", { propagationPolicy: "Background" });
  assert.equal((await pod.report(logged("two"))).cancelled, false);
  await pod.end(137);
  const { error: recorded } = await untilJob(service, id, "Failed");
  assert.deepEqual(recorded, error);
});

test(
  "a resource that the contract refuses is failed, and leaves its project's list",
  options,
  async (t) => {
    const { api, client } = await startClusterService(t, await createTestNamespace());
    const spec = { kind: "compress", target: "cpu", dryRun: false, suspend: false } as const;
    const refused = [
      { model, name: "no\0name" },
      { model: { source: "hf://acme/net@main/a\rb" } },
      { model: { source: "https://models.example:99999/detector.onnx" } },
      { model, recipe: { exclude: Array<string>(100).fill("\0") } },
    ];
    for (const [i, fields] of refused.entries()) {
      const metadata = { name: `refused-${i}` };
      await api.create(compressionJobs, { metadata, spec: { ...spec, cancel: false, ...fields } });
    }
    for (const i of refused.keys()) {
      const { reason, message } = await untilRecorded(api, `refused-${i}`);
      assert.equal(reason, "resource_invalid");
      assert.match(message ?? "", /^spec\.(name|model\.source|recipe\.exclude\[0\]) .*must /);
    }
    assert.deepEqual((await client.call("listJobs", {})).jobs, []);
  },
);

test("jobs of a batch that the cluster does not take say so with its words", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { api, client } = service;
  const body = { models: [model], targets: ["cpu", "cpu-int8"] };
  const { id, jobs } = await client.call("submitBatch", { body });
  await until("the Batch is there", () => api.get(batches, id).catch(() => undefined));
  // As the operator writes it.
  const message = "Cannot create compressionjobs: denied request: not here";
  const cause = { reason: "resource_invalid", message };
  const failures = [{ job: `${id}-0000`, model: "detector", target: "cpu", ...cause }];
  const status = { status: "Running" as const, marks: "f.", failures };
  await api.patch(batches, id, { status }, { subresource: "status" });
  const { error } = await untilJob(service, jobs[0]?.id ?? "", "Failed");
  assert.deepEqual(error, { code: "resource_invalid", message });
  const params = { id: jobs[1]?.id ?? "" };
  assert.equal((await client.call("getJob", { params })).statusReason, "queued");

  const refused = { statusReason: "not_submitted", statusMessage: "exceeded quota" };
  await api.patch(batches, id, { status: refused }, { subresource: "status" });
  const untilReason = (wanted: string) =>
    until(`the next job is ${wanted}`, async () => {
      const job = await client.call("getJob", { params });
      return job.statusReason === wanted && job;
    });
  const { statusMessage } = await untilReason("not_submitted");
  assert.equal(statusMessage, "The cluster does not take the job yet: exceeded quota");
  const taken = { statusReason: null, statusMessage: null };
  await api.patch(batches, id, { status: taken }, { subresource: "status" });
  await untilReason("queued");
});

test("a Batch that fails fast for want of an upload is cancelled", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const missing = { source: `upload:sha256:${"0".repeat(64)}`, name: "missing" };
  const made = await service.api.create(batches, {
    metadata: { name: "lacking" },
    spec: {
      models: [model, missing],
      targets: ["cpu"],
      kind: "compress",
      dryRun: false,
      parallelism: 1,
      failFast: true,
      cancel: false,
      suspend: false,
    },
  });
  await until("the operator is asked", async () => {
    return (await service.api.get(batches, "lacking")).spec.cancel;
  });
  const { jobs } = await service.client.call("getBatch", { params: { id: resolveBatchId(made) } });
  assert.equal(jobs[1]?.status, "Failed");
});
