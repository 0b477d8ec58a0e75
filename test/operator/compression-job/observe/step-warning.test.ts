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

test("a warning about a Job without pods counts at once, the latest one", () => {
  const warning = findStepWarning(job, [], () => [
    { message: "Error creating: an earlier one", at: start },
    { message: "Job has reached the specified backoff limit", at: start + 6 * second },
    refusal,
  ]);
  assert.equal(describeWarning(6, warning), "exceeded quota");
});

test("a warning about a Job counts too where its last pod failed before", () => {
  const failed = (at: number) => makePod(job, { phase: "Failed", createdAt: start + at * second });
  const warnings = () => [refusal];
  assert.equal(describeWarning(6, findStepWarning(job, [failed(4)], warnings)), "exceeded quota");
  assert.equal(describeWarning(7, findStepWarning(job, [failed(6)], warnings)), "");
});

test("a warning that is not repeated is over", () => {
  const warning = findStepWarning(job, [], () => [refusal]);
  assert.equal(describeWarning(364, warning), "exceeded quota");
  assert.equal(describeWarning(365, warning), "");
});

test("a warning about a pod counts when its preparation takes long", () => {
  const pod = makePod(job, { phase: "Pending", startedAt: start });
  const warning = findStepWarning(job, [pod], (uid) => (uid === pod.uid ? [mount] : [refusal]));
  assert.equal(describeWarning(29, warning), "");
  assert.equal(describeWarning(30, warning), "MountVolume.SetUp failed");
});

test("a warning about a pod counts when the scheduler does not look at it for long", () => {
  const pod = makePod(job, { phase: "Pending", node: undefined });
  const claim = { message: 'template "one-gpu" not found', at: start + 10 * second };
  const warning = findStepWarning(job, [pod], () => [claim]);
  assert.equal(describeWarning(29, warning), "");
  assert.equal(describeWarning(60, warning), claim.message);
});

test("a Job whose pod runs has no warning", () => {
  assert.equal(
    findStepWarning(job, [makePod(job, { phase: "Running" })], () => [refusal]),
    undefined,
  );
});
