import assert from "node:assert/strict";
import test from "node:test";
import type { JobSummary } from "../../src/contract/jobs/job-summary.ts";
import { compareFigures } from "../../src/dashboard/shared/figures.ts";

const none = { latencyRatio: null, latencyRatioLow: null, latencyRatioHigh: null };
const figures: JobSummary["figures"] = {
  originalBytes: 400_000,
  resultBytes: 103_000,
  sizeRatio: 0.26,
  sqnrDb: 20,
  cosine: 0.99,
  ...none,
  latencyMs: 10.4,
};
const baseline: NonNullable<JobSummary["baseline"]> = {
  jobId: "job-01m83n2pf7rz8g94dhz51wjtp7",
  sha: "5a1b7e0".padEnd(40, "0"),
  branch: "main",
  resultBytes: 100_000,
  sqnrDb: 23,
  latencyMs: 10,
  ...none,
};

function judge(changed: Partial<NonNullable<JobSummary["baseline"]>>) {
  const compared = compareFigures({ figures, baseline: { ...baseline, ...changed } });
  return Object.fromEntries(compared.map(({ figure, judgement }) => [figure, judgement]));
}

test("a figure is better or worse than the baseline's only beyond its noise", () => {
  assert.deepEqual(judge({}), { size: "worse", accuracy: "worse" });
  assert.deepEqual(judge({ resultBytes: 103_900, sqnrDb: 19.1 }), {
    size: "same",
    accuracy: "same",
  });
  assert.equal(judge({ resultBytes: 200_000 })["size"], "better");
  assert.equal(judge({ sqnrDb: 18 })["accuracy"], "better");
});

test("latencies are compared by their interval, where one run timed both", () => {
  assert.equal(judge({ latencyMs: 9 })["latency"], undefined);
  const timed = { latencyRatio: 0.95, latencyRatioLow: 0.93, latencyRatioHigh: 0.97 };
  assert.equal(judge(timed)["latency"], "better");
  assert.equal(judge({ ...timed, latencyRatioHigh: 1.01 })["latency"], "same");
});

test("what cannot be compared is left out", () => {
  assert.deepEqual(judge({ sqnrDb: null, latencyMs: null }), { size: "worse" });
  assert.deepEqual(compareFigures({ figures, baseline: null }), []);
});
