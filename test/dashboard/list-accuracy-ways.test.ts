import assert from "node:assert/strict";
import test from "node:test";
import type { Accuracy } from "../../src/contract/jobs/telemetry.ts";
import { listAccuracyWays } from "../../src/dashboard/compare/list-accuracy-ways.ts";
import { makeCompletedJob } from "../support/make-job.ts";

function makeMeasured(fields: Partial<Accuracy> | undefined, data?: string) {
  const { recipe, telemetry } = makeCompletedJob();
  const { accuracy } = telemetry;
  assert.ok(accuracy);
  return {
    recipe: { ...recipe, evaluation: { ...recipe.evaluation, data } },
    telemetry: { ...telemetry, accuracy: fields && { ...accuracy, ...fields } },
  };
}

test("accuracies of weights, of the caller's samples and of generated ones are distinguished", () => {
  const generated = makeMeasured({});
  const others = [
    makeMeasured({ level: "weights" }),
    makeMeasured({ data: "caller" }, "https://data.example/a.npz"),
  ];
  assert.deepEqual(listAccuracyWays([generated, ...others, makeMeasured(undefined), generated]), [
    "A, E on generated samples",
    "B by the worst weight",
    "C on samples that were provided, https://data.example/a.npz",
  ]);
});

test("accuracies on samples of two files are distinguished", () => {
  const [morning, night] = ["3", "4"].map((digit) => `upload:sha256:${digit.repeat(64)}`);
  const jobs = [morning, night, morning].map((data) => makeMeasured({ data: "caller" }, data));
  const [first, second] = listAccuracyWays(jobs);
  assert.match(first ?? "", /^A, C on samples that were provided, upload:sha256:3+…$/);
  assert.match(second ?? "", /^B on samples that were provided, upload:sha256:4+…$/);
});
