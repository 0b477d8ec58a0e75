import assert from "node:assert/strict";
import test from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import type { ObservedState } from "../../../../operator/controllers/compression-job/observe/observed-state.ts";
import { recordFinalizer } from "../../../../src/contract/resource-labels.ts";
import { workerExit } from "../../../../src/contract/worker.ts";
import { makeChild, makeJob, makeObservedState, makePod, start } from "../make-job.ts";

const metadata = { finalizers: [recordFinalizer], generation: 3 };
const minute = 60_000;

/** What `decide()` writes, laid over the status. */
function decidedStatus(fields: Partial<ObservedState>) {
  const observed = makeObservedState(fields);
  const write = decide(observed).actions.find((action) => action.type === "writeStatus");
  return { ...observed.resource.status, ...write?.patch };
}

function conditionTexts({ conditions = [] }: ReturnType<typeof decidedStatus>): string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`).toSorted();
}

test("decide() reports the outcomes of a job as tools wait for them", () => {
  const failing = makeJob({ metadata });
  const child = makeChild(failing);
  const at = start + minute;
  const ended = { ...child, end: { complete: false, reason: "", message: "", at } };
  const termination = { exitCode: workerExit.crashed, reason: "Error", message: "", at };
  const pods = [makePod(child, { phase: "Failed", termination })];
  const outcomes = {
    Failed: decidedStatus({ resource: failing, workerJobs: [ended], pods }),
    Cancelled: decidedStatus({ resource: makeJob({ metadata, spec: { cancel: true } }) }),
    Completed: decidedStatus({
      resource: failing,
      workerJobs: [{ ...ended, end: { ...ended.end, complete: true } }],
    }),
  };
  assert.deepEqual(conditionTexts(outcomes.Failed), [
    "Failed=True Failed",
    "Finished=True Failed",
    "Ready=False Failed",
    "Stalled=True Failed",
  ]);
  assert.deepEqual(conditionTexts(outcomes.Cancelled), [
    "Finished=True Cancelled",
    "Ready=False Cancelled",
    "Stalled=True Cancelled",
  ]);
  assert.deepEqual(conditionTexts(outcomes.Completed), [
    "Complete=True Completed",
    "Finished=True Completed",
    "Ready=True Completed",
  ]);
  for (const { observedGeneration } of Object.values(outcomes)) assert.equal(observedGeneration, 3);
});

test("decide() reports that a job is suspended, and that it is resumed", () => {
  const suspended = makeJob({ metadata, spec: { suspend: true } });
  const status = decidedStatus({ resource: suspended });
  assert.ok(conditionTexts(status).includes("Suspended=True Suspended"));
  const resumed = makeJob({ metadata, status });
  const child = makeChild(resumed);
  const after = decidedStatus({ resource: resumed, workerJobs: [child], pods: [makePod(child)] });
  assert.ok(conditionTexts(after).includes("Suspended=False Resumed"));
});

test("decide() observes a spec that changes after the end of a job", () => {
  const resource = makeJob({
    metadata: { generation: 3 },
    spec: { ttlSecondsAfterFinished: 3600 },
    status: { status: "Completed", observedGeneration: 2 },
  });
  assert.deepEqual(decide(makeObservedState({ resource })).actions, [
    { type: "writeStatus", patch: { observedGeneration: 3 } },
  ]);
});
