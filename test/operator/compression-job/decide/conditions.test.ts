import assert from "node:assert/strict";
import test from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import type { ObservedState } from "../../../../operator/controllers/compression-job/observe/observed-state.ts";
import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import { makeChild, makeJob, makeObservedState, makePod, makeWarning, start } from "../make-job.ts";

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

test("decide() records one event of a suspension, also where workers have to stop first", () => {
  const status = { status: "Optimizing", statusReason: "optimizing" } as const;
  const working = makeJob({ metadata, spec: { suspend: true }, status });
  const child = makeChild(working);
  const events = (fields: Partial<ObservedState>) =>
    decide(makeObservedState(fields)).actions.flatMap((action) =>
      action.type === "recordEvent" ? [action.reason] : [],
    );
  const stopping = { resource: working, workerJobs: [child], pods: [makePod(child)] };
  assert.deepEqual(events(stopping), ["Suspended"]);
  const reported = makeJob({ metadata, spec: working.spec, status: decidedStatus(stopping) });
  assert.equal(decidedStatus({ resource: reported }).status, "Pending");
  assert.deepEqual(events({ resource: reported }), []);
});

test("decide() takes a job back to Pending whose pods a queue took away, once none runs", () => {
  const startedAt = new Date(start).toISOString();
  const working = { status: "Optimizing", statusReason: "optimizing", startedAt } as const;
  const resource = makeJob({ metadata, status: working });
  const child = makeChild(resource, { suspended: true, queue: "gpus" });
  const stopping = makePod(child, { deletionDeadline: start + minute });
  const before = decidedStatus({ resource, workerJobs: [child], pods: [stopping] });
  assert.equal(before.status, "Optimizing");
  assert.ok(conditionTexts(before).includes("Scheduled=False WaitingForQueue"));

  const status = decidedStatus({ resource, workerJobs: [child] });
  assert.deepEqual(
    [status.status, status.statusReason, status.statusMessage],
    ["Pending", "waiting_for_queue", 'Waiting to be admitted again by the queue "gpus"'],
  );
  assert.deepEqual(
    status.transitions?.map((transition) => transition.status),
    ["Pending"],
  );
  const reported = makeJob({ metadata, status });
  assert.deepEqual(
    decide(makeObservedState({ resource: reported, workerJobs: [child] })).actions,
    [],
  );
});

test("decide() takes a job back to Pending only where all of its pods were preempted", () => {
  const status = { status: "Optimizing", statusReason: "optimizing" } as const;
  const resource = makeJob({ metadata, status });
  const child = makeChild(resource, { step: "optimize", parallelism: 2 });
  const unscheduled = { reason: "Unschedulable", message: "no GPU is free", since: start };
  const waiting = makePod(child, { node: undefined, phase: "Pending", unscheduled });
  const running = makePod(child, { index: 1, uid: "other" });
  const decided = (pods: readonly (typeof waiting)[]) =>
    decidedStatus({ resource, workerJobs: [child], pods });
  assert.equal(decided([waiting, running]).status, "Optimizing");
  const alone = decided([waiting]);
  assert.deepEqual([alone.status, alone.statusReason], ["Pending", "unschedulable"]);
});

test("decide() does not count a pod that ended with its suspended Job as an attempt", () => {
  const resource = makeJob({ metadata });
  const child = makeChild(resource, { suspended: true });
  const at = start + minute / 2;
  const termination = { exitCode: workerExit.cancelled, reason: "Error", message: "", at };
  const pods = [1, 2, 3].map((number) =>
    makePod(child, {
      name: `pod-${number}`,
      uid: `pod-${number}`,
      phase: "Failed",
      termination,
      deletionDeadline: number === 3 ? start + minute : undefined,
    }),
  );
  assert.equal(decidedStatus({ resource, workerJobs: [child], pods }).status, "Pending");
});

test("decide() observes a spec that changes after the end of a job", () => {
  const ended = {
    type: "Finished",
    status: "True",
    reason: "Completed",
    message: "",
    lastTransitionTime: new Date(start).toISOString(),
    observedGeneration: 2,
  } as const;
  const resource = makeJob({
    metadata: { generation: 3 },
    spec: { ttlSecondsAfterFinished: 3600 },
    status: { status: "Completed", observedGeneration: 2, conditions: [ended] },
  });
  const patch = { observedGeneration: 3, conditions: [{ ...ended, observedGeneration: 3 }] };
  assert.deepEqual(decide(makeObservedState({ resource })).actions, [
    { type: "writeStatus", patch },
  ]);
});

test("decide() reports in events that a job starts, and how it ended", () => {
  const reasons = (fields: Partial<ObservedState>) =>
    decide(makeObservedState(fields)).actions.flatMap((action) =>
      action.type === "recordEvent" ? [`${action.reason} ${action.warning}`] : [],
    );
  assert.deepEqual(reasons({ resource: makeJob() }), ["Started false"]);
  for (const [status, warning] of [
    ["Completed", false],
    ["Failed", true],
  ] as const) {
    const resource = makeJob({ metadata, status: { status, report: { recorded: true } } });
    assert.deepEqual(reasons({ resource }), [`${status} ${warning}`]);
  }
});

test("decide() reports a job whose pod is being started as seen, and not twice", () => {
  const resource = makeJob({ metadata });
  const child = makeChild(resource);
  const pods = [makePod(child, { phase: "Pending", node: "node-1" })];
  const fields = { workerJobs: [child], pods, now: child.createdAt + 3_000 };
  const early = makeObservedState({ ...fields, resource, now: child.createdAt + 2_000 });
  assert.deepEqual(decide(early).actions, []);
  assert.equal(decide(early).requeueAt, child.createdAt + 3_000);

  const status = decidedStatus({ ...fields, resource });
  assert.match(status.jobId ?? "", /^job-/);
  assert.equal(status.observedGeneration, 3);
  assert.deepEqual([status.status, status.statusReason], ["Pending", "waiting_for_pod"]);
  assert.deepEqual(conditionTexts(status), ["Ready=False WaitingForPod"]);

  const told = makeJob({ metadata, status });
  assert.deepEqual(decide(makeObservedState({ ...fields, resource: told })).actions, []);
  const running = [makePod(child, { phase: "Running" })];
  const later = makeObservedState({ ...fields, resource: told, pods: running });
  assert.deepEqual(decide(later).actions, []);

  const waiting = { reason: "ErrImagePull", message: "not found" };
  const refused = [makePod(child, { phase: "Pending", node: "node-1", waiting })];
  const after = { ...fields, resource: told, pods: refused, now: start + minute };
  assert.ok(conditionTexts(decidedStatus(after)).includes("Ready=False ImageUnavailable"));
});

test("decide() emits an event for a failure that the service reports", () => {
  const at = new Date(start).toISOString();
  const error = { code: "model_not_found", message: "The project has no such model" } as const;
  const ends = [
    [{ status: "Completed", at, reason: "completed", message: "The model was compressed" }],
    [{ status: "Failed", at, reason: "model_not_found", message: error.message }, error],
  ] as const;
  const events = ends.map(([end, reported]) => {
    const transitions = [
      { status: "Pending", at } as const,
      ...(reported ? [] : [{ status: "Optimizing", at } as const]),
      end,
    ];
    const status = { report: { transitions, ...(reported && { error: reported }) } };
    const resource = makeJob({ metadata, status });
    return decide(makeObservedState({ resource })).actions.filter(
      ({ type }) => type === "recordEvent",
    );
  });
  assert.deepEqual(events, [
    [],
    [{ type: "recordEvent", warning: true, reason: "ModelNotFound", message: error.message }],
  ]);
});

test("decide() says why the scheduler does not look at a pod", () => {
  const resource = makeJob({ metadata });
  const child = makeChild(resource);
  const pods = [makePod(child, { phase: "Pending", node: undefined })];
  const stepWarning = makeWarning('PodResourceClaim gpu: template "one-gpu" not found');
  const status = decidedStatus({ resource, workerJobs: [child], pods, stepWarning });
  assert.deepEqual(
    [status.statusReason, status.statusMessage],
    [
      "unschedulable",
      'No node can take the worker: PodResourceClaim gpu: template "one-gpu" not found',
    ],
  );
  assert.ok(conditionTexts(status).includes("Scheduled=False Unschedulable"));
});
