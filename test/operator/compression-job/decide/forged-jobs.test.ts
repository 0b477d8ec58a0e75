import assert from "node:assert/strict";
import test from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import type { WorkerJob } from "../../../../operator/controllers/compression-job/observe/worker-job.ts";
import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { makeChild, makeJob, makeObservedState, start } from "../make-job.ts";

const resource = makeJob({ metadata: { finalizers: [recordFinalizer] } });
const { name, uid } = resource.metadata;
const end = { complete: true, reason: "", message: "", at: start };

const forgeries: Readonly<Record<string, Partial<WorkerJob>>> = {
  "has no owner": { controller: undefined },
  "has another owner": { controller: { kind: "CronJob", name: "nightly", uid: "nightly" } },
  "has an owner of another kind": { controller: { kind: "CronJob", name, uid } },
  "is of an earlier resource": { controller: { kind: "CompressionJob", name, uid: "earlier" } },
  "runs under another account": { serviceAccount: "default" },
};

for (const [what, forgery] of Object.entries(forgeries)) {
  test(`decide() does not believe a Job with the job's labels that ${what}`, () => {
    const forged = makeChild(resource, { step: "assemble", end, ...forgery });
    const workerJobs = [{ ...forged, name: "forged" }];
    const { actions } = decide(makeObservedState({ resource, workerJobs }));
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["createWorkerJob", "recordEvent"],
    );
    const working = makeJob({ ...resource, status: { status: "Optimizing" }, spec: {} });
    const cancelled = { ...working, spec: { ...working.spec, cancel: true } };
    const running = workerJobs.map((job) => ({ ...job, end: undefined }));
    const stopping = decide(makeObservedState({ resource: cancelled, workerJobs: running }));
    const isStopped = stopping.actions.some(({ type }) => type === "deleteWorkerJob");
    assert.equal(isStopped, what === "has no owner");
  });
}

for (const [what, forgery, owner] of [
  ["nobody", { controller: undefined }, /is not this job's$/],
  [
    "a CronJob",
    { controller: { kind: "CronJob", name: "nightly", uid: "nightly" } },
    /belongs to CronJob "nightly"$/,
  ],
  [
    "itself only by its owner",
    { serviceAccount: "default", end: undefined },
    /runs under the account "default", not the workers' "worker"$/,
  ],
] as const) {
  test(`decide() fails a job where a Job of ${what} has the name that it needs`, () => {
    const workerJobs = [makeChild(resource, { end, ...forgery })];
    const { actions, requeueAt } = decide(makeObservedState({ resource, workerJobs }));
    const [write, event] = actions;
    assert.ok(write?.type === "writeStatus" && event?.type === "recordEvent");
    assert.equal(write.patch.status, "Failed");
    assert.equal(write.patch.error?.code, "resource_invalid");
    assert.match(event.message, /^A Job "voices-work", which this job needs for itself, is there/);
    assert.match(event.message, owner);
    assert.equal(requeueAt, undefined);
  });
}

test("decide() makes anew what ended under the account of another release", () => {
  const left = makeChild(resource, { step: "shard", end, serviceAccount: "earlier-worker" });
  const parallel = makeJob({ ...resource, spec: { recipe: { parallelism: 3 } } });
  const observed = makeObservedState({ resource: parallel, workerJobs: [left] });
  const { actions, requeueAt = 0 } = decide(observed);
  const { name: leftName, uid: leftUid } = left;
  assert.deepEqual(actions, [{ type: "deleteWorkerJob", name: leftName, uid: leftUid }]);
  assert.ok(requeueAt > observed.now);
  assert.equal(decide({ ...observed, workerJobs: [] }).actions[0]?.type, "createWorkerJob");
});
