import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import { toWorkerJob } from "../../../../operator/controllers/compression-job/observe/worker-job.ts";
import { jobSettings, makeJob, makeObservedState, makePod, start } from "../make-job.ts";

test("a Job to which a policy of the cluster gave a deadline is ended with its CompressionJob", () => {
  const finishedAt = new Date(start).toISOString();
  const resource = makeJob({ status: { status: "Failed", finishedAt } });
  const { name, uid, creationTimestamp } = resource.metadata;
  const owner = { apiVersion: "", kind: "CompressionJob", name, uid, controller: true };
  const metadata = { name: "voices-work", uid: "job-uid", resourceVersion: "1", creationTimestamp };
  const job = toWorkerJob({
    metadata: { ...metadata, ownerReferences: [owner] },
    spec: {
      activeDeadlineSeconds: 86_400,
      template: { spec: { serviceAccountName: jobSettings.serviceAccount } },
    },
  });
  const observed = makeObservedState({ resource, workerJobs: [job], pods: [makePod(job)] });
  assert.deepEqual(
    decide(observed).actions.map(({ type }) => type),
    ["endWorkerJob", "deletePod"],
  );
});
