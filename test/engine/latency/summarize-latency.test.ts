import assert from "node:assert/strict";
import test from "node:test";
import { summarizeLatency } from "../../../src/engine/latency/summarize-latency.ts";

/** Latency of models whose runs take 1 ms, 2 ms and so on. */
function summarizeRising(runs: number) {
  const times = Array.from({ length: runs }, (_, run) => run + 1);
  const interval = { ratio: 1, low: 0.99, high: 1.01, sessions: 4 };
  const rounds = [{ original: times, result: times, logRatio: 0 }];
  return summarizeLatency([{ sample: [], rounds, interval }]).result;
}

test("a percentile is given only where at least five runs lie beyond it", () => {
  assert.deepEqual(Object.keys(summarizeRising(99)).toSorted(), ["p50Ms", "runs"]);
  assert.deepEqual(Object.keys(summarizeRising(499)).toSorted(), ["p50Ms", "p95Ms", "runs"]);
  const { p95Ms = 0, p99Ms = 0, runs } = summarizeRising(500);
  assert.equal(runs, 500);
  assert.ok(p95Ms >= 475 && p95Ms <= 476, `p95 ${p95Ms}`);
  assert.ok(p99Ms >= 495 && p99Ms <= 496, `p99 ${p99Ms}`);
});
