import assert from "node:assert/strict";
import test from "node:test";
import { summarizeJob } from "../../src/contract/jobs/summarize-job.ts";
import { layOutPareto } from "../../src/dashboard/compare/pareto.ts";
import { makeCompletedJob } from "../support/make-job.ts";

/** A result with a ratio of latencies and the ends of its interval, and an accuracy. */
function makeResult(ratios: readonly [number, number, number], sqnrDb: number) {
  const summary = summarizeJob(makeCompletedJob({ gates: [] }));
  const [latencyRatio, latencyRatioLow, latencyRatioHigh] = ratios;
  const latency = { latencyRatio, latencyRatioLow, latencyRatioHigh };
  return { ...summary, figures: { ...summary.figures, ...latency, sqnrDb } };
}

test("a latency that is not known puts no result on the front, and none behind it", () => {
  const jobs = [
    makeResult([0.8, 0.2, 3], 40),
    makeResult([0.9, 0.88, 0.92], 30),
    makeResult([0.95, 0.94, 0.96], 20),
  ];
  const timed = layOutPareto(jobs, ["latency", "accuracy"]);
  assert.deepEqual(
    timed.points.map(({ look }) => look),
    ["unsure", "front", "behind"],
  );
  assert.equal(timed.front.length, 1);
  const sized = layOutPareto(jobs, ["size", "accuracy"]);
  assert.deepEqual(
    sized.points.map(({ look }) => look),
    ["front", "behind", "behind"],
  );
});

test("no two values of an axis are the same text, however near the results are", () => {
  const jobs = [makeResult([0.951, 0.95, 0.96], 18.71), makeResult([0.952, 0.95, 0.96], 18.74)];
  const { across, down } = layOutPareto(jobs, ["latency", "accuracy"]);
  assert.deepEqual(
    [across, down].map(({ ticks }) => ticks.map(({ text }) => text)),
    [
      ["×0.95", "×0.96"],
      ["18.7 dB", "18.8 dB"],
    ],
  );
});

test("what a dry run predicts is no result to ship", () => {
  const planned = { ...makeResult([0.8, 0.79, 0.81], 40), dryRun: true };
  const { points, front } = layOutPareto(
    [planned, makeResult([0.9, 0.88, 0.92], 30)],
    ["latency", "accuracy"],
  );
  assert.deepEqual([points.map(({ look }) => look), front.length], [["failing", "front"], 1]);
});

test("an accuracy that was measured otherwise beats none, and is counted", () => {
  const weighed = { ...makeResult([0.5, 0.49, 0.51], 90), accuracyBasis: "weights" };
  const figures = { ...weighed.figures, sqnrDb: null };
  const unmeasured = { ...weighed, accuracyBasis: undefined, figures };
  const jobs = [
    weighed,
    unmeasured,
    makeResult([0.9, 0.88, 0.92], 30),
    makeResult([0.95, 0.94, 0.96], 40),
  ];
  const byAccuracy = layOutPareto(jobs, ["latency", "accuracy"]);
  assert.deepEqual(
    byAccuracy.points.map(({ look }) => look),
    ["front", "front"],
  );
  assert.deepEqual([byAccuracy.basis, byAccuracy.otherwise], ["generated", 1]);
  const bySize = layOutPareto(jobs, ["size", "latency"]);
  assert.deepEqual([bySize.points.length, bySize.basis, bySize.otherwise], [4, undefined, 0]);
});
