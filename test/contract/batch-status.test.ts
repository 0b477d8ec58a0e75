import assert from "node:assert/strict";
import test from "node:test";
import { deriveBatchStatus, zeroCounts } from "../../src/contract/batches/batch.ts";
import type { JobStatus } from "../../src/contract/jobs/status.ts";

test("deriveBatchStatus() follows from the statuses of the jobs", () => {
  const cases: readonly [jobs: Partial<Record<JobStatus, number>>, want: string][] = [
    [{ Pending: 2 }, "Pending"],
    [{ Pending: 2, Completed: 1 }, "Running"],
    [{ Sharding: 1 }, "Running"],
    [{ Optimizing: 1, Cancelling: 1, Failed: 1 }, "Running"],
    [{ Cancelling: 1, Failed: 1 }, "Cancelling"],
    [{ Completed: 2 }, "Completed"],
    [{ Completed: 2, Cancelled: 1 }, "Cancelled"],
    [{ Completed: 2, Cancelled: 1, Failed: 1 }, "Failed"],
  ];
  for (const [jobs, want] of cases) {
    assert.equal(deriveBatchStatus({ ...zeroCounts, ...jobs }), want, JSON.stringify(jobs));
  }
});
