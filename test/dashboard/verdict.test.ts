import assert from "node:assert/strict";
import test from "node:test";
import { sayBatchEnd } from "../../src/dashboard/shared/verdict.ts";

const counts = {
  Pending: 0,
  Sharding: 0,
  Optimizing: 0,
  Completed: 3,
  Failed: 0,
  Cancelling: 0,
  Cancelled: 0,
};

test("a batch whose jobs fail gates does not end as if all were well", () => {
  const say = (Failed: number, gatesFailed: number) =>
    sayBatchEnd({ status: "Completed", counts: { ...counts, Failed }, gatesFailed });
  assert.equal(say(0, 0), "Completed");
  assert.equal(say(0, 2), "Completed: 2 jobs fail a gate");
  assert.equal(say(1, 1), "Completed: 1 job failed, 1 job fails a gate");
});
