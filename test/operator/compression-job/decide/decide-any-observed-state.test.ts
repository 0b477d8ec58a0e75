import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import {
  toCompressionJob,
  trimCompressionJob,
} from "../../../../operator/controllers/compression-job/observe/observe-compression-job.ts";
import { mayRun } from "../../../../operator/controllers/compression-job/observe/worker-pod.ts";
import { conditionTypes } from "../../../../src/contract/custom-resources/condition.ts";
import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal, jobStatus } from "../../../../src/contract/jobs/status.ts";
import { workerExit } from "../../../../src/contract/worker-protocol/exit-codes.ts";
import { parseResponseJson } from "../../../../src/kubernetes/cluster-client.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import { jobStep } from "../../../../src/resources/job-identity.ts";
import { makeChild, makeJob, makePod, makeWarning, makeObservedState, start } from "../make-job.ts";
import { type Happening, hasRecordFinalizer, SimulatedJob } from "../simulate-job.ts";

const number = fc.nat({ max: 5 });
const typed = <Type extends string>(type: Type) => fc.constant(type);
const weighted: readonly (readonly [number, fc.Arbitrary<Happening>])[] = [
  [8, fc.record({ type: typed("reconcile"), actions: fc.constantFrom(0, 1, 2, 99, 99, 99) })],
  [8, fc.record({ type: typed("observe"), of: fc.constantFrom("resource", "jobs", "pods") })],
  [8, fc.record({ type: typed("progress"), serviceWorks: fc.boolean() })],
  [12, fc.record({ type: typed("node"), pod: number, choice: number })],
  [
    10,
    fc.record({
      type: fc.constantFrom(
        "sync",
        "sync",
        "sync",
        "service",
        "service",
        "loseNode",
        "evict",
        "forget",
      ),
    }),
  ],
  [4, fc.record({ type: typed("wait"), seconds: fc.constantFrom(1, 5, 15, 60, 900, 4000) })],
  [2, fc.record({ type: fc.constantFrom("cancel", "delete") })],
  [1, fc.record({ type: typed("suspend"), suspend: fc.boolean() })],
  [1, fc.record({ type: typed("deleteChild"), job: number, background: fc.boolean() })],
  [1, fc.record({ type: typed("deletePod"), pod: number })],
];
const happening = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const spec = fc.record({
  kind: fc.constantFrom("compress", "quantize"),
  recipe: fc.constantFrom({}, { parallelism: 3 }),
});

test("whatever happens, a job keeps to the rules of its statuses, and comes to an end", () => {
  fc.assert(
    fc.property(
      spec,
      fc.array(happening, { maxLength: 80 }),
      fc.boolean(),
      (fields, happenings, serviceWorks) => {
        const job = new SimulatedJob(makeJob({ spec: fields }));
        for (const next of happenings) {
          job.happen(next);
          assertBounded(job);
        }
        // No more interference; the service works, or is deleted once it has reported its records.
        job.happen({ type: "suspend", suspend: false });
        job.happen({ type: "service" });
        for (let round = 0; round < 100; round++) {
          job.happen({ type: "progress", serviceWorks });
          job.happen({ type: "wait", seconds: 10 });
        }
        assert.ok(!job.cluster.pods.some(mayRun), "a pod is left");
        if (job.resource === undefined) return;
        assert.ok(
          isTerminal(job.resource.status.status),
          `the job stays ${job.resource.status.status}`,
        );
        assert.equal(
          hasRecordFinalizer(job.resource) &&
            (serviceWorks || job.resource.metadata.deletionTimestamp !== undefined),
          false,
          "the resource is held for ever",
        );
        job.happen({ type: "progress", serviceWorks });
        job.observeAll();
        assert.deepEqual(
          decide(job.observedState() ?? makeObservedState()).actions,
          [],
          "there is still something to do",
        );
      },
    ),
    { numRuns: 3000 },
  );
});

function assertBounded({ cluster }: SimulatedJob): void {
  for (const { uid, step } of cluster.jobs) {
    const most = step === "optimize" ? 3 : 1;
    const active = cluster.pods.filter((pod) => pod.workerJobUid === uid && mayRun(pod));
    assert.ok(active.length <= most, `more than ${most} pods of ${step} at once`);
  }
}

const anyJob = fc.record({
  step: fc.constantFrom(...jobStep.options),
  deleting: fc.boolean(),
  suspended: fc.boolean(),
  ending: fc.boolean(),
  ours: fc.boolean(),
  end: fc.constantFrom(undefined, true, false),
});
const anyPod = fc.record({
  job: fc.nat({ max: 2 }),
  phase: fc.constantFrom("Pending", "Running", "Succeeded", "Failed", "Unknown"),
  node: fc.constantFrom(undefined, "node-1"),
  deletedBy: fc.constantFrom(undefined, start, start + 100_000),
  disruption: fc.constantFrom(undefined, "EvictionByEvictionAPI"),
  index: fc.nat({ max: 2 }),
  exitCode: fc.constantFrom(undefined, ...Object.values(workerExit)),
  waiting: fc.constantFrom(undefined, { reason: "ErrImagePull", message: "not found" }),
});
const anyObservedState = fc
  .record({
    spec,
    status: fc.constantFrom(...jobStatus.options),
    finalized: fc.boolean(),
    cancel: fc.boolean(),
    suspend: fc.boolean(),
    deleting: fc.boolean(),
    target: fc.constantFrom("cpu", "nowhere"),
    jobs: fc.uniqueArray(anyJob, { maxLength: 3, selector: ({ step }) => step }),
    pods: fc.array(anyPod, { maxLength: 4 }),
    seconds: fc.nat({ max: 10_000 }),
    stepWarning: fc.constantFrom(undefined, makeWarning("exceeded quota")),
  })
  .map(
    ({
      spec: fields,
      status,
      finalized,
      cancel,
      suspend,
      deleting,
      target,
      jobs,
      pods,
      seconds,
      stepWarning,
    }) => {
      const resource = makeJob({
        spec: { ...fields, cancel, suspend, target },
        status: { status },
        metadata: {
          ...(finalized && { finalizers: [recordFinalizer] }),
          ...(deleting && { deletionTimestamp: new Date(start).toISOString() }),
        },
      });
      const other = { kind: "CronJob", name: "nightly", uid: "other" };
      const children = jobs.map(({ ours, end, ...job }) =>
        makeChild(resource, {
          ...job,
          ...(!ours && { controller: other }),
          end:
            end === undefined ? undefined : { complete: end, reason: "", message: "", at: start },
        }),
      );
      const workers = pods.map(({ job, exitCode, ...pod }, i) =>
        makePod(children[job] ?? makeChild(resource), {
          ...pod,
          uid: `pod-${i}`,
          termination:
            exitCode === undefined ? undefined : { exitCode, reason: "", message: "", at: start },
        }),
      );
      return makeObservedState({
        now: start + seconds * 1000,
        resource,
        workerJobs: children,
        pods: workers,
        stepWarning,
      });
    },
  );

test("decide() answers for every observed state, always the same, and creates nothing that should not exist", () => {
  fc.assert(
    fc.property(anyObservedState, (observed) => {
      const { actions, requeueAt } = decide(observed);
      assert.deepEqual(decide(observed), { actions, requeueAt });
      const { spec: wanted, status, metadata } = observed.resource;
      const creates = actions.filter(({ type }) => type === "createWorkerJob").length;
      const isOver =
        isTerminal(status.status) ||
        status.status === "Cancelling" ||
        wanted.cancel ||
        wanted.suspend;
      assert.ok(
        creates === 0 || !(isOver || metadata.deletionTimestamp),
        "a Job for a job that wants none",
      );
      assert.ok(creates === 0 || !observed.pods.some(mayRun), "a Job beside a pod");
      assert.ok(creates <= 1);
      for (const action of actions) {
        if (action.type === "deletePod")
          assert.ok(
            observed.pods.find(({ uid }) => uid === action.uid)?.deletionDeadline === undefined,
          );
        if (action.type !== "deleteWorkerJob") continue;
        const job = observed.workerJobs.find(
          ({ uid, name }) => uid === action.uid && name === action.name,
        );
        assert.equal(job?.controller?.uid, metadata.uid, "a Job of another owner is deleted");
      }
    }),
    { numRuns: 3000 },
  );
});

const anyReport = fc.record({
  transitions: fc.subarray(
    jobStatus.options.map((status) => ({ status, at: new Date(start).toISOString() })),
  ),
  recorded: fc.boolean(),
});
const lastTransitionTime = new Date(start).toISOString();
const conditions = [conditionTypes.ready, conditionTypes.finished].map((type) => ({
  type,
  status: "True" as const,
  reason: "Any",
  message: "",
  lastTransitionTime,
}));

test("a decision depends on nothing that the cache leaves out of a resource", () => {
  fc.assert(
    fc.property(anyObservedState, fc.subarray(conditions), anyReport, (observed, some, report) => {
      const { status } = observed.resource;
      const transitions = [{ status: status.status, at: lastTransitionTime }];
      const stored = parseResponseJson<Stored<CompressionJobObject>>(
        JSON.stringify({
          ...observed.resource,
          status: {
            ...status,
            transitions,
            report: { ...report, artifacts: [] },
            conditions: some,
          },
        }),
      );
      const cached = toCompressionJob(trimCompressionJob(stored));
      const whole = toCompressionJob(stored);
      assert.deepEqual(
        decide({ ...observed, resource: cached }),
        decide({ ...observed, resource: whole }),
      );
    }),
    { numRuns: 1000 },
  );
});
