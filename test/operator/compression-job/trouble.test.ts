import assert from "node:assert/strict";
import test from "node:test";
import { currentTrouble, findTrouble } from "../../../operator/controllers/compression-job/trouble.ts";
import { makeChild, makeJob, makePod, start } from "./make-job.ts";

const second = 1000;
const job = makeChild(makeJob());
const refusal = { message: "Error creating: exceeded quota", at: start + 5 * second };
const mount = { message: "MountVolume.SetUp failed", at: start + 10 * second };

function told(at: number, trouble: ReturnType<typeof findTrouble>): string {
  return currentTrouble({ trouble, now: start + at * second });
}

test("a warning about a Job without pods is told at once, the latest one", () => {
  const trouble = findTrouble(job, [], () => [{ message: "an earlier one", at: start }, refusal]);
  assert.equal(told(6, trouble), "exceeded quota");
});

test("a warning that is not repeated is over", () => {
  const trouble = findTrouble(job, [], () => [refusal]);
  assert.equal(told(364, trouble), "exceeded quota");
  assert.equal(told(365, trouble), "");
});

test("a warning about a pod is told when it has been prepared for long", () => {
  const pod = makePod(job, { phase: "Pending", startedAt: start });
  const trouble = findTrouble(job, [pod], (uid) => (uid === pod.uid ? [mount] : [refusal]));
  assert.equal(told(29, trouble), "");
  assert.equal(told(30, trouble), "MountVolume.SetUp failed");
});

test("a Job whose pod runs is in no trouble", () => {
  assert.equal(
    findTrouble(job, [makePod(job, { phase: "Running" })], () => [refusal]),
    undefined,
  );
});
