import assert from "node:assert/strict";
import test from "node:test";
import { summarizeJob } from "../../src/contract/jobs/summarize-job.ts";
import type { Accuracy } from "../../src/contract/jobs/telemetry.ts";
import { listAccuracyWays } from "../../src/dashboard/compare/list-accuracy-ways.ts";
import { groupByBasis } from "../../src/dashboard/shared/accuracy-basis.ts";
import { makeCompletedJob } from "../support/make-job.ts";

function makeMeasured(fields: Partial<Accuracy> | undefined) {
  const job = makeCompletedJob();
  const { accuracy } = job.telemetry;
  assert.ok(accuracy);
  const telemetry = { ...job.telemetry, accuracy: fields && { ...accuracy, ...fields } };
  return summarizeJob({ ...job, telemetry });
}

const [morning, night] = ["3", "4"].map((digit) =>
  makeMeasured({ data: "caller", dataSha256: digit.repeat(64) }),
);

test("accuracies of weights, of the caller's samples and of generated ones are distinguished", () => {
  const generated = makeMeasured({});
  const others = [makeMeasured({ level: "weights" }), makeMeasured({ data: "caller" })];
  assert.deepEqual(listAccuracyWays([generated, ...others, makeMeasured(undefined), generated]), [
    "A, E on generated samples",
    "B by the worst weight",
    "C on samples that were provided",
  ]);
});

test("accuracies on samples of two files are distinguished, wherever the files came from", () => {
  assert.ok(morning && night);
  assert.deepEqual(listAccuracyWays([morning, night, morning]), [
    "A, C on samples that were provided (SHA-256 333333333333…)",
    "B on samples that were provided (SHA-256 444444444444…)",
  ]);
});

test("jobs are grouped by what can be compared, the most first and the unmeasured last", () => {
  assert.ok(morning && night);
  const unmeasured = makeMeasured(undefined);
  const jobs = [unmeasured, unmeasured, unmeasured, night, morning, morning];
  assert.deepEqual(groupByBasis(jobs), [
    [morning, morning],
    [night],
    [unmeasured, unmeasured, unmeasured],
  ]);
});
