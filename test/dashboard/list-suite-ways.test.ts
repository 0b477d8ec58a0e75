import assert from "node:assert/strict";
import test from "node:test";
import { listSuiteWays } from "../../src/dashboard/suite/list-suite-ways.ts";

test("a suite says in which ways accuracy was measured, where the shown batches differ", () => {
  const bases = ["weights", "generated", undefined, "generated", "builtin"];
  const jobs = bases.map((accuracyBasis, index) => ({ batchId: `batch-${index}`, accuracyBasis }));
  const showing = (...places: readonly number[]) => ({
    batches: places.map((place) => ({ id: `batch-${place}` })),
    jobs,
  });
  assert.deepEqual(listSuiteWays(showing(0, 1, 2, 3)), [
    "by the worst weight",
    "on generated samples",
  ]);
  assert.deepEqual(listSuiteWays(showing(1, 2, 3)), []);
});
