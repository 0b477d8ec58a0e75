import assert from "node:assert/strict";
import test from "node:test";
import type { Accuracy } from "../../src/contract/jobs/telemetry.ts";
import { listAccuracyWays } from "../../src/dashboard/compare/list-accuracy-ways.ts";
import { makeCompletedJob } from "../support/make-job.ts";

function makeMeasured(fields: Partial<Accuracy> | undefined) {
  const { telemetry } = makeCompletedJob();
  const { accuracy } = telemetry;
  assert.ok(accuracy);
  return { telemetry: { ...telemetry, accuracy: fields && { ...accuracy, ...fields } } };
}

test("accuracies of weights, of the caller's samples and of generated ones are distinguished", () => {
  const generated = makeMeasured({});
  const others = [makeMeasured({ level: "weights" }), makeMeasured({ data: "caller" })];
  assert.deepEqual(listAccuracyWays([generated, ...others, makeMeasured(undefined), generated]), [
    "A, E on generated samples",
    "B by the worst weight",
    "C on samples that were provided",
  ]);
});
