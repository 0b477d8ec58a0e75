import assert from "node:assert/strict";
import test from "node:test";
import { summarizeJob } from "../../src/contract/jobs/summarize-job.ts";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { describeCell } from "../../src/dashboard/batch/describe-cell.ts";
import { makeTestApp, startJob } from "../server/test-app.ts";

const size = { originalBytes: 4_000_000, resultBytes: 1_000_000, ratio: 0.25, predicted: false };

async function makeJobs(t: Parameters<typeof makeTestApp>[0]) {
  const { id, target, ...rest } = jobSchema.parse(await startJob(await makeTestApp(t)));
  const completed = {
    ...rest,
    id,
    target,
    status: "Completed" as const,
    telemetry: { ...rest.telemetry, size },
  };
  const inBatch = {
    id,
    target,
    model: "detector",
    status: "Completed" as const,
    gatesFailed: false,
  };
  return { inBatch, summary: summarizeJob(completed) };
}

test("a cell says which gate failed before it says what is better", async (t) => {
  const { inBatch, summary } = await makeJobs(t);
  const baseline = { ...summary.baseline, jobId: inBatch.id, sha: "5".repeat(40), branch: "main" };
  const ratio = { latencyRatio: null, latencyRatioLow: null, latencyRatioHigh: null };
  const before = { ...baseline, ...ratio, resultBytes: 2_000_000, sqnrDb: null, latencyMs: null };
  const better = { ...summary, baseline: before };
  assert.deepEqual(describeCell(inBatch, summary, "summary"), {
    look: "passed",
    title: "1.00 MB",
    detail: "25 %",
  });
  assert.deepEqual(describeCell(inBatch, better, "summary"), {
    look: "better",
    title: "1.00 MB",
    detail: "size ▼ 50.0 %",
  });
  assert.equal(describeCell(inBatch, better, "size").detail, "▼ 50.0 % from 2.00 MB");
  const gate = { gate: "maxSizeRatio" as const, limit: 0.2, actual: 0.25, baseline: null };
  const gates = [{ ...gate, level: "fail" as const, passed: false }];
  assert.deepEqual(describeCell(inBatch, { ...better, gates, gatesFailed: true }, "summary"), {
    look: "bad",
    title: "1.00 MB",
    detail: "has 25 % of the original's size; 20 % are allowed",
  });
});
