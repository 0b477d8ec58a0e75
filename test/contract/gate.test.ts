import assert from "node:assert/strict";
import test from "node:test";
import { evaluateGates } from "../../src/contract/gate.ts";
import type { Telemetry } from "../../src/contract/telemetry.ts";

const measured: Telemetry = {
  progress: { fraction: 1 },
  size: { originalBytes: 100, resultBytes: 30, ratio: 0.3, predicted: false },
  warnings: [],
};

test("evaluateGates() passes a figure that is exactly at its limit", () => {
  assert.deepEqual(evaluateGates({ maxSizeRatio: 0.3 }, measured), [
    { gate: "maxSizeRatio", limit: 0.3, actual: 0.3, passed: true },
  ]);
});

test("evaluateGates() fails a figure beyond its limit", () => {
  assert.equal(evaluateGates({ maxSizeRatio: 0.29 }, measured)[0]?.passed, false);
});

test("evaluateGates() fails a gate whose figure was not measured", () => {
  assert.deepEqual(evaluateGates({ minSqnrDb: 20 }, measured), [
    { gate: "minSqnrDb", limit: 20, actual: null, passed: false },
  ]);
});
