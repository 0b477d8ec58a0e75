import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import { toWorkerJob } from "../../../../operator/controllers/compression-job/observe/worker-job.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { resourceLabels } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ObservedWorkerJob } from "../../../../src/resources/observed-resources.ts";
import { jobSettings, makeJob, makeObservedState, makePod, start } from "../make-job.ts";

/** A Job of the resource as the API server has it, with what others have set in it. */
function observe(
  { metadata: { name, uid, creationTimestamp } }: CompressionJob,
  { labels, spec }: { labels?: Record<string, string>; spec: ObservedWorkerJob["spec"] },
) {
  const owner = { apiVersion: "", kind: "CompressionJob", name, uid, controller: true };
  const identity = { name: "voices-work", uid: "job-uid", resourceVersion: "1" };
  const template = { spec: { serviceAccountName: jobSettings.serviceAccount } };
  return toWorkerJob({
    metadata: { ...identity, creationTimestamp, labels: labels ?? {}, ownerReferences: [owner] },
    spec: { ...spec, template },
  });
}

test("a Job to which a policy of the cluster gave a deadline is ended with its CompressionJob", () => {
  const finishedAt = new Date(start).toISOString();
  const resource = makeJob({ status: { status: "Failed", finishedAt } });
  const job = observe(resource, { spec: { activeDeadlineSeconds: 86_400 } });
  const observed = makeObservedState({ resource, workerJobs: [job], pods: [makePod(job)] });
  assert.deepEqual(
    decide(observed).actions.map(({ type }) => type),
    ["endWorkerJob", "deletePod"],
  );
});

test("a Job to which Kueue gave the default queue of its namespace waits for that", () => {
  const resource = makeJob();
  const labels = { [resourceLabels.queue]: "default" };
  const job = observe(resource, { labels, spec: { suspend: true } });
  const [write] = decide(makeObservedState({ resource, workerJobs: [job] })).actions;
  assert.ok(write?.type === "writeStatus");
  assert.deepEqual(
    [write.patch.statusReason, write.patch.statusMessage],
    ["waiting_for_queue", 'Waiting to be admitted by the queue "default"'],
  );
});
