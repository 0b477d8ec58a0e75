import assert from "node:assert/strict";
import test from "node:test";
import { desiredStatus } from "../../../src/executors/cluster/desired-status.ts";
import {
  type CompressionJobStatus,
  compressionJobStatus,
} from "../../../src/contract/custom-resources/compression-job.ts";
import { conditionTypes } from "../../../src/contract/custom-resources/condition.ts";
import { statusLimits } from "../../../src/contract/custom-resources/api-group.ts";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { jobStatus, type JobStatus, leadsTo } from "../../../src/contract/jobs/status.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "../../kubernetes/connect-test-cluster.ts";
import { makeJob } from "../../support/make-job.ts";
import { makeResource } from "./make-resource.ts";

const now = new Date("2026-01-01T00:01:00.000Z");

function project(
  job: Job,
  status?: CompressionJobStatus,
  allRecorded = false,
): CompressionJobStatus {
  return desiredStatus({ job, resource: makeResource(status), allRecorded, now });
}

/** A record that is as large as workers can make it. */
function largestJob(): Job {
  const long = "\u{1f600}".repeat(250);
  const figures = { p50Ms: 1.5, p95Ms: 2.5, p99Ms: 3.5, runs: 20 };
  const output = {
    name: long,
    sqnrDb: 20.5,
    cosine: 0.99,
    maxAbsoluteError: 0.1,
    top1Agreement: 1,
  };
  return makeJob({
    status: "Failed",
    statusReason: "accuracy_below_floor",
    statusMessage: long.repeat(8),
    startedAt: now.toISOString(),
    finishedAt: now.toISOString(),
    transitions: Array.from({ length: 12 }, () => ({
      status: "Pending" as const,
      at: now.toISOString(),
      reason: "queued",
      message: long.repeat(8),
    })),
    telemetry: {
      progress: { fraction: 0.999, message: long },
      size: { originalBytes: 1e12, resultBytes: 1, ratio: 1e-12, predicted: false },
      weights: { total: 1e6, quantized: 1e6, quantizedBytes: 1e12 },
      accuracy: {
        level: "outputs",
        data: "caller",
        samples: 1024,
        sqnrDb: 20.5,
        cosine: 0.99,
        outputs: Array.from({ length: 64 }, () => output),
      },
      latency: { original: figures, result: figures, ratio: 0.5 },
      memory: { originalPeakBytes: 1e12, resultPeakBytes: 1e12, workerPeakBytes: 1e12 },
      device: {
        executionProvider: "cuda",
        name: long.slice(0, 200),
        threads: 512,
        runtime: "onnxruntime 1.31.1",
      },
      stageSeconds: { fetch: 1.5, shard: 1.5, optimize: 1.5, evaluate: 1.5, publish: 1.5 },
      warnings: Array.from({ length: 64 }, () => ({
        code: "w".repeat(100),
        message: long.repeat(2),
      })),
    },
    artifacts: Array.from({ length: 300 }, (_, i) => ({
      name: `${i}-`.padEnd(200, "n"),
      kind: "stage" as const,
      bytes: 1e15,
      sha256: "a".repeat(64),
    })),
    gates: [
      { gate: "minSqnrDb", limit: 30, actual: 20.5, baseline: null, level: "fail", passed: false },
    ],
    error: { code: "accuracy_below_floor", message: long.repeat(8) },
  });
}

test("projectedStatus() moves a status along the transition table alone", () => {
  const own = new Set<JobStatus>(["Pending", "Cancelling", "Cancelled"]);
  for (const from of jobStatus.options) {
    for (const to of jobStatus.options) {
      const { status } = project(makeJob({ status: to }), { status: from });
      const mayMove = !own.has(to) && leadsTo("compress", from, to);
      assert.equal(
        status,
        mayMove ? to : from,
        `${from} became ${status} where the record is ${to}`,
      );
    }
  }
});

test("projectedStatus() does not change with the figures of a job that works", () => {
  const working = (fraction: number) =>
    makeJob({ status: "Optimizing", telemetry: { progress: { fraction }, warnings: [] } });
  const status = project(working(0.1), { status: "Sharding" });
  assert.equal(status.status, "Optimizing");
  assert.deepEqual(project(working(0.9), status), status);
});

test("projectedStatus() leaves what a waiting job waits for to the operator", () => {
  const reported = {
    status: "Pending" as const,
    statusReason: "unschedulable",
    statusMessage: "No node has a GPU",
  };
  assert.deepEqual(project(makeJob(), reported), reported);
});

test("projectedStatus() keeps conditions of others, and says that all is recorded", () => {
  const scheduled = {
    type: conditionTypes.scheduled,
    status: "True" as const,
    lastTransitionTime: now.toISOString(),
    reason: "Starting",
    message: "",
  };
  const { conditions = [] } = project(
    makeJob({ status: "Completed" }),
    { status: "Optimizing", conditions: [scheduled] },
    true,
  );
  assert.deepEqual(
    conditions.map(({ type, status }) => [type, status]),
    [
      [conditionTypes.scheduled, "True"],
      [conditionTypes.ready, "True"],
      [conditionTypes.finished, "True"],
      [conditionTypes.complete, "True"],
      [conditionTypes.recorded, "True"],
    ],
  );
});

test("projectedStatus() stays within the bounds of a status", () => {
  const status = project(largestJob(), { status: "Pending" }, true);
  assert.deepEqual(compressionJobStatus.parse(status), JSON.parse(JSON.stringify(status)));
  assert.equal(status.artifacts?.length, statusLimits.artifacts);
});

test("the API server takes the largest status", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const { spec } = makeResource();
  const { metadata } = await client.create(compressionJobs, { metadata: { name: "large" }, spec });
  const status = project(largestJob(), { status: "Pending" }, true);
  const written = await client.patch(
    compressionJobs,
    metadata.name,
    { status },
    { subresource: "status" },
  );
  assert.deepEqual(compressionJobStatus.parse(written.status), compressionJobStatus.parse(status));
  assert.ok(Buffer.byteLength(JSON.stringify(written.status)) < 65_536);
});
