import assert from "node:assert/strict";
import test from "node:test";
import type { SuiteHistory } from "../../src/contract/batches/suite.ts";
import { findFirstFailing } from "../../src/dashboard/suite/find-first-failing.ts";

type Fates = readonly ("passes" | "fails" | "did not end")[];

/** A suite of one job each batch, oldest first. */
function makeHistory(fates: Fates): Pick<SuiteHistory, "batches" | "jobs"> {
  const batches = fates.map((_, place) => ({ id: `batch-${place}` }));
  const jobs = fates.map((fate, place) => ({
    batchId: `batch-${place}`,
    status: fate === "did not end" ? "Pending" : "Completed",
    gatesFailed: fate === "fails",
  }));
  return { batches, jobs } as unknown as Pick<SuiteHistory, "batches" | "jobs">;
}

const cases: readonly (readonly [Fates, number | undefined])[] = [
  [[], undefined],
  [["fails", "passes"], undefined],
  [["fails", "passes", "fails", "fails"], 2],
  [["passes", "fails", "did not end"], 1],
  [["fails", "did not end", "fails"], 0],
];

test("the commit since which a suite fails is the first of those up to the newest", () => {
  for (const [fates, place] of cases) {
    assert.equal(findFirstFailing(makeHistory(fates)), place, fates.join(", "));
  }
});
