import assert from "node:assert/strict";
import test from "node:test";
import type { Action } from "../../../../operator/controllers/compression-job/decide/decision.ts";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import { jobSettings, makeChild, makeJob, makeObservedState, makePod, start } from "../make-job.ts";

const withFinalizer = { finalizers: [recordFinalizer] };
const resource = makeJob({ metadata: withFinalizer });
const child = makeChild(resource);
const minute = 60_000;

function writtenStatus(actions: readonly Action[]) {
  return actions.find((action) => action.type === "writeStatus")?.patch;
}

test("decide() releases a deleted job that no service records, and waits for the others", () => {
  const ended = { ...resource, status: { status: "Failed" as const } };
  assert.deepEqual(decide(makeObservedState({ resource: ended, now: start + 10 * minute })), {
    actions: [],
    requeueAt: undefined,
  });
  const deleted = { resource: ended, deletionSeenAt: start };
  assert.deepEqual(decide(makeObservedState({ ...deleted, now: start + 10_000 })), {
    actions: [],
    requeueAt: start + 40_000,
  });
  assert.deepEqual(decide(makeObservedState({ ...deleted, now: start + 40_000 })).actions, [
    { type: "setFinalizer", present: false },
  ]);
});

test("decide() stops the Job that a deletion with --cascade=orphan left without an owner", () => {
  const deletionTimestamp = new Date(start).toISOString();
  const deleted = makeJob({ metadata: { ...withFinalizer, deletionTimestamp } });
  const orphan = { ...child, controller: undefined };
  const pods = [makePod(orphan)];
  const stop = decide(makeObservedState({ resource: deleted, workerJobs: [orphan], pods })).actions;
  assert.deepEqual(
    stop.map(({ type }) => type),
    ["writeStatus", "deleteWorkerJob", "deletePod"],
  );
});

test("decide() holds a node that does not stop a pod responsible", () => {
  const cancelling = makeJob({
    metadata: withFinalizer,
    spec: { cancel: true },
    status: { status: "Cancelling" },
  });
  const pod = makePod(child, { deletionDeadline: start });
  const deleting = { ...child, deleting: true };
  const early = decide(
    makeObservedState({
      resource: cancelling,
      workerJobs: [deleting],
      pods: [pod],
      now: start + 10_000,
    }),
  );
  assert.deepEqual(early, { actions: [], requeueAt: start + 20_000 });
  const late = makeObservedState({
    resource: cancelling,
    workerJobs: [deleting],
    pods: [pod],
    now: start + 20_000,
  });
  assert.deepEqual(decide(late).actions, [{ type: "observeNodes" }]);
  assert.deepEqual(decide({ ...late, readyNodes: new Set(["node-1"]) }), {
    actions: [],
    requeueAt: start + 30_000,
  });
  const { actions } = decide({ ...late, readyNodes: new Set() });
  assert.match(
    writtenStatus(actions)?.statusMessage ?? "",
    /node "node-1" did not confirm that the pod "voices-work-abcde" stopped/,
  );
  assert.ok(actions.some(({ type }) => type === "removeLostPod"));
});

test("decide() deletes jobs by the operator's time to live, but not those of a Batch", () => {
  const status = { status: "Completed" as const, report: { recorded: true } };
  const settings = { ...jobSettings, resourceTtlSeconds: 60 };
  const decideAfterMinute = (fields: Parameters<typeof makeJob>[0]) =>
    decide(
      makeObservedState({
        resource: makeJob({ ...fields, status }),
        settings,
        now: start + minute,
      }),
    );
  assert.deepEqual(decideAfterMinute({}).actions, [{ type: "deleteResource" }]);
  const longer = decideAfterMinute({ spec: { ttlSecondsAfterFinished: 90 } });
  assert.deepEqual(longer, { actions: [], requeueAt: start + 90_000 });
  const labels = { [resourceLabels.batchId]: "batch" };
  const owner = { kind: "Batch", name: "nightly", uid: "batch-uid", controller: true };
  const owned = decideAfterMinute({ metadata: { labels, ownerReferences: [owner] } });
  assert.deepEqual(owned.actions, []);
  const orphan = decideAfterMinute({ metadata: { labels } });
  assert.deepEqual(orphan.actions, [{ type: "deleteResource" }]);
});
