import assert from "node:assert/strict";
import test from "node:test";
import { hasReport, reportFromJob } from "../../../src/executors/cluster/job-report.ts";
import {
  compressionJobStatus,
  type JobReport,
} from "../../../src/contract/custom-resources/compression-job.ts";
import { statusLimits } from "../../../src/contract/custom-resources/api-group.ts";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { jobStatus, type JobStatus } from "../../../src/contract/jobs/status.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "../../kubernetes/connect-test-cluster.ts";
import { makeJob } from "../../support/make-job.ts";
import { makeResource } from "./make-resource.ts";

const now = new Date("2026-01-01T00:01:00.000Z");

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
      { gate: "minCosine", limit: 0.9, actual: null, baseline: null, level: "fail", passed: false },
    ],
    error: { code: "accuracy_below_floor", message: long.repeat(8) },
  });
}

test("reportFromJob() does not change with the figures of a job that works", () => {
  const working = (fraction: number) =>
    makeJob({ status: "Optimizing", telemetry: { progress: { fraction }, warnings: [] } });
  assert.deepEqual(reportFromJob(working(0.1), false), reportFromJob(working(0.9), false));
});

test("hasReport() leaves what a job waits for and its cancellation to the operator", () => {
  const reported = (job: Partial<Job>, report?: JobReport, allRecorded = false) =>
    hasReport(makeJob(job), { status: "Pending", report }, allRecorded);
  const own: readonly JobStatus[] = ["Pending", "Cancelling", "Cancelled"];
  for (const status of jobStatus.options) {
    assert.equal(reported({ status }), !own.includes(status), status);
  }
  assert.ok(reported({ status: "Cancelled" }, undefined, true));
  assert.ok(reported({ status: "Pending" }, {}), "a job whose pods were taken away");
});

test("reportFromJob() stays within the bounds of a status", () => {
  const report = reportFromJob(largestJob(), true);
  const status = { status: "Failed", report };
  assert.deepEqual(compressionJobStatus.parse(status), JSON.parse(JSON.stringify(status)));
  assert.equal(report.artifacts?.length, statusLimits.artifacts);
});

test("the API server takes the largest report", { skip: clusterMissing }, async () => {
  const { client } = await connectTestCluster();
  const { spec } = makeResource();
  const { metadata } = await client.create(compressionJobs, { metadata: { name: "large" }, spec });
  const report = reportFromJob(largestJob(), true);
  const status = { status: "Pending", report } as const;
  const written = await client.patch(
    compressionJobs,
    metadata.name,
    { status },
    { subresource: "status" },
  );
  assert.deepEqual(
    compressionJobStatus.parse(written.status).report,
    compressionJobStatus.parse(status).report,
  );
  assert.ok(Buffer.byteLength(JSON.stringify(written.status)) < 65_536);
});
