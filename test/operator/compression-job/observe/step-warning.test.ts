import assert from "node:assert/strict";
import test from "node:test";
import {
  currentWarningMessage,
  findStepWarning,
} from "../../../../operator/controllers/compression-job/observe/step-warning.ts";
import { makeChild, makeJob, makePod, start } from "../make-job.ts";

const second = 1000;
const job = makeChild(makeJob());
const refusal = { message: "Error creating: exceeded quota", at: start + 5 * second };
const mount = { message: "MountVolume.SetUp failed", at: start + 10 * second };

function describeWarning(at: number, stepWarning: ReturnType<typeof findStepWarning>): string {
  return currentWarningMessage({ stepWarning, now: start + at * second });
}

test("a warning about a Job without pods is told at once, the latest one", () => {
  const trouble = findStepWarning(job, [], () => [
    { message: "an earlier one", at: start },
    refusal,
  ]);
  assert.equal(describeWarning(6, trouble), "exceeded quota");
});

test("a warning that is not repeated is over", () => {
  const trouble = findStepWarning(job, [], () => [refusal]);
  assert.equal(describeWarning(364, trouble), "exceeded quota");
  assert.equal(describeWarning(365, trouble), "");
});

test("a warning about a pod is told when it has been prepared for long", () => {
  const pod = makePod(job, { phase: "Pending", startedAt: start });
  const trouble = findStepWarning(job, [pod], (uid) => (uid === pod.uid ? [mount] : [refusal]));
  assert.equal(describeWarning(29, trouble), "");
  assert.equal(describeWarning(30, trouble), "MountVolume.SetUp failed");
});

test("a Job whose pod runs is in no trouble", () => {
  assert.equal(
    findStepWarning(job, [makePod(job, { phase: "Running" })], () => [refusal]),
    undefined,
  );
});
