import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import {
  decideBatch,
  deleteExpiredBatch,
} from "../../../operator/controllers/batch/decide-batch.ts";
import { batchResourceStatus } from "../../../src/contract/custom-resources/batch-resource.ts";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { systemClock } from "../../../src/controller-runtime/clock.ts";
import { makeBatch } from "./make-batch.ts";
import { type Happening, isUnfinished, SimulatedBatch } from "./simulate-batch.ts";

const models = 2;
const jobs = models * 2;
const job = fc.nat({ max: jobs - 1 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("reconcile" as const),
      writes: fc.constantFrom(0, 1, 2, 99, 99, 99),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("observe" as const), job }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("advance" as const),
      job,
      choice: fc.nat({ max: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), job }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("occupy" as const), job }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("suspend" as const), suspend: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.constant<Happening>({ type: "cancel" }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("limit" as const),
      parallelism: fc.integer({ min: 1, max: jobs }),
    }),
  },
);
const happenings = fc.array(happening, { maxLength: 80, size: "max" });
const settings = fc.record({
  parallelism: fc.integer({ min: 1, max: jobs }),
  failFast: fc.boolean(),
});

/** Everything is observed, and every job ends at last. */
function letJobsEnd(simulated: SimulatedBatch): void {
  simulated.apply({ type: "suspend", suspend: false });
  for (let round = 0; round < 12 * jobs; round++) {
    for (let i = 0; i < jobs; i++) simulated.syncCache(i);
    simulated.apply({ type: "reconcile", writes: 99 });
    for (let i = 0; i < jobs; i++) simulated.apply({ type: "advance", job: i, choice: 0 });
  }
}

function countUnfinished({ children }: SimulatedBatch): number {
  return [...children.values()].filter(isUnfinished).length;
}

/** What the operator knows of, which a user may have changed since. */
function observedParallelism(simulated: SimulatedBatch): number {
  return simulated.observedState().batch.spec.parallelism;
}

function assertConsistent(simulated: SimulatedBatch): void {
  const { batch } = simulated;
  const { counts, marks } = batchResourceStatus.parse(batch.status);
  if (counts === undefined) return;
  assert.equal(
    Object.values(counts).reduce<number>((sum, count = 0) => sum + count, 0),
    batchJobCount(batch),
    "a job was counted twice or not at all",
  );
  assert.equal(marks?.length, batchJobCount(batch));
}

test("whatever happens, a batch keeps its limit, creates no job twice and keeps what it reported", () => {
  fc.assert(
    fc.property(settings, happenings, (spec, all) => {
      const simulated = new SimulatedBatch(makeBatch({ models, ...spec }));
      for (const next of all) {
        const { batch, made } = simulated;
        const before = new Map(made);
        const most = Math.max(countUnfinished(simulated), observedParallelism(simulated));
        const marks = batch.status?.marks ?? ".".repeat(jobs);
        simulated.apply(next);
        assertConsistent(simulated);
        assert.ok(countUnfinished(simulated) <= most, "more jobs at once than allowed");
        for (const [i, times] of simulated.made) {
          if (times > (before.get(i) ?? 0)) assert.equal(marks[i], ".", `job ${i} was made again`);
        }
        const after = simulated.batch.status;
        for (const [i, mark] of marks.split("").entries()) {
          if ("cgf".includes(mark)) assert.equal(after?.marks?.[i], mark, `job ${i} ended twice`);
        }
        if (batch.status !== undefined && isTerminal(batch.status.status)) {
          assert.equal(after?.status, batch.status.status);
          assert.equal(after.finishedAt, batch.status.finishedAt);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test("whatever happened, a batch ends when its jobs do, and nothing is left to do", () => {
  fc.assert(
    fc.property(settings, happenings, (spec, all) => {
      const simulated = new SimulatedBatch(makeBatch({ models, ...spec }));
      for (const next of all) simulated.apply(next);
      letJobsEnd(simulated);
      const { status } = simulated.batch;
      assert.ok(
        status !== undefined && isTerminal(status.status),
        `the batch is still ${status?.status}`,
      );
      assert.match(status.marks ?? "", /^[cgfx]+$/);
      assert.deepEqual([...simulated.children.values()].filter(isUnfinished), []);
      assert.deepEqual(decideBatch(simulated.observedState()), {
        create: [],
        childPatches: [],
        status,
      });
    }),
    { numRuns: 1_000 },
  );
});

test("a batch that fails fast or is cancelled creates nothing more", () => {
  fc.assert(
    fc.property(happenings, (all) => {
      const simulated = new SimulatedBatch(makeBatch({ models, failFast: true, parallelism: 2 }));
      for (const next of all) {
        const { marks = "" } = simulated.batch.status ?? {};
        const stopped =
          marks.includes("f") ||
          (simulated.batch.spec.cancel && simulated.observedState().batch.spec.cancel);
        const made = new Map(simulated.made);
        simulated.apply(next);
        if (stopped) assert.deepEqual(simulated.made, made);
      }
    }),
    { numRuns: 1_000 },
  );
});

test("what was done is not done again", () => {
  fc.assert(
    fc.property(settings, happenings, (spec, all) => {
      const simulated = new SimulatedBatch(makeBatch({ models, ...spec }));
      for (const next of all) {
        for (let i = 0; i < jobs; i++) simulated.syncCache(i);
        simulated.apply(next);
        if (next.type !== "reconcile" || next.writes < 99) continue;
        const { create, childPatches } = decideBatch(simulated.observedState());
        assert.deepEqual([create, childPatches], [[], []]);
      }
    }),
    { numRuns: 500 },
  );
});

test("a job that was suspended by hand stays so, until its batch is suspended and resumed", () => {
  const simulated = new SimulatedBatch(makeBatch({ models: 1 }));
  const reconcile = () => {
    for (let i = 0; i < 2; i++) simulated.syncCache(i);
    simulated.apply({ type: "reconcile", writes: 99 });
  };
  const suspended = () => [...simulated.children.values()].map((child) => child.spec.suspend);
  reconcile();
  simulated.change(0, { suspend: true });
  reconcile();
  assert.deepEqual(suspended(), [true, false]);
  simulated.apply({ type: "suspend", suspend: true });
  reconcile();
  assert.deepEqual(suspended(), [true, true]);
  assert.equal(simulated.batch.status?.statusMessage, "Suspended: 2 of 2 jobs wait");
  simulated.apply({ type: "suspend", suspend: false });
  reconcile();
  assert.deepEqual(suspended(), [false, false]);
});

test("a suspended batch creates nothing", () => {
  const simulated = new SimulatedBatch(makeBatch({ suspend: true }));
  simulated.apply({ type: "reconcile", writes: 99 });
  assert.equal(simulated.children.size, 0);
});

test("a batch whose parallelism is lowered begins no more until enough of its jobs have ended", () => {
  const simulated = new SimulatedBatch(makeBatch({ models, parallelism: 3 }));
  const reconcile = () => {
    for (let i = 0; i < jobs; i++) simulated.syncCache(i);
    simulated.apply({ type: "reconcile", writes: 99 });
    return simulated.children.size;
  };
  const end = (index: number) => {
    for (let i = 0; i < 9; i++) simulated.apply({ type: "advance", job: index, choice: 0 });
  };
  assert.equal(reconcile(), 3);
  simulated.apply({ type: "limit", parallelism: 1 });
  end(0);
  end(1);
  assert.equal(reconcile(), 3);
  end(2);
  assert.equal(reconcile(), 4);
});

test("a name that a foreign resource has fails its job, one of an earlier batch is waited for", () => {
  const simulated = new SimulatedBatch(makeBatch({ models: 1 }));
  simulated.apply({ type: "occupy", job: 0 });
  const { children, ...foreign } = simulated.observedState();
  const owner = {
    apiVersion: "modeloptimization.dev/v1",
    kind: "Batch",
    name: "nightly",
    uid: "earlier",
    controller: true,
  };
  const nameConflicts = new Map(
    [...foreign.nameConflicts].map(([job, { metadata, ...child }]) => [
      job,
      { ...child, metadata: { ...metadata, ownerReferences: [owner] } },
    ]),
  );
  const failed = decideBatch({ ...foreign, children });
  assert.equal(failed.status.marks, "f.");
  assert.deepEqual(
    failed.status.failures?.map(({ job, reason }) => [job, reason]),
    [["nightly-0000", "NameConflict"]],
  );
  const waiting = decideBatch({ ...foreign, children, nameConflicts });
  assert.deepEqual([waiting.status.marks, waiting.create], ["..", [1]]);
  assert.match(
    waiting.status.statusMessage ?? "",
    /^Waits until CompressionJob "nightly-0000" of an earlier Batch/,
  );
});

test("a job that the API server denies has failed, and the others go on", () => {
  const simulated = new SimulatedBatch(makeBatch({ models: 1 }));
  const denied = new Map([[0, "Cannot create compressionjobs: denied request"]]);
  const { status, create } = decideBatch({ ...simulated.observedState(), denied });
  assert.deepEqual([status.marks, create], ["f.", [1]]);
  const [failure] = status.failures ?? [];
  assert.deepEqual(
    [failure?.job, failure?.reason, failure?.message],
    ["nightly-0000", "resource_invalid", "Cannot create compressionjobs: denied request"],
  );
});

test("a batch whose jobs would be too large together creates none, and says which field it is", () => {
  const exclude = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(200, "x"));
  const overrides = exclude.map((match) => ({ match, scheme: "int8-weight" as const }));
  const recipe = { exclude, overrides };
  const fitting = decideBatch(
    new SimulatedBatch(makeBatch({ models: 150, recipe })).observedState(),
  );
  assert.equal(fitting.status.status, "Pending");
  assert.equal(fitting.create.length, 100);
  const large = new SimulatedBatch(makeBatch({ models: 1000, recipe }));
  const { create, status } = decideBatch(large.observedState());
  assert.deepEqual(create, []);
  assert.equal(status.status, "Failed");
  const message =
    /^spec\.recipe: Makes jobs with \d+ bytes of models and recipes, of 16777216 at most/;
  assert.match(status.statusMessage ?? "", message);
  const failed = status.conditions?.find(({ type }) => type === "Failed");
  assert(failed?.status === "True");
  assert.match(failed.message, message);
  assert.equal(status.failures?.[0]?.reason, "BatchTooLarge");
  assert.deepEqual(batchResourceStatus.parse(status), status);
});

test("a batch that nothing happens to is written once", () => {
  const simulated = new SimulatedBatch(makeBatch());
  simulated.apply({ type: "reconcile", writes: 99 });
  for (let i = 0; i < 4; i++) simulated.syncCache(i);
  simulated.apply({ type: "reconcile", writes: 99 });
  const { status } = simulated.batch;
  assert.deepEqual(decideBatch(simulated.observedState()).status, status);
  assert.deepEqual([status?.status, status?.finished, status?.marks], ["Pending", "0/4", "mmmm"]);
});

test("a batch is kept after its time to live until the service has recorded its jobs", async () => {
  const finishedAt = "2026-03-01T01:00:00Z";
  const simulated = new SimulatedBatch(makeBatch({ models: 1, ttlSecondsAfterFinished: 60 }));
  letJobsEnd(simulated);
  const { batch, children } = simulated.observedState();
  const deleted: string[] = [];
  const status = "Completed" as const;
  const expiring = {
    batch: { ...batch, status: { ...batch.status, status, finishedAt } },
    client: { delete: async (_: unknown, name: string) => void deleted.push(name) },
    clock: { ...systemClock, date: () => new Date("2026-03-01T01:01:00Z") },
  };
  const withReport = (recorded: boolean) => ({
    children: new Map(
      [...children].map(([index, child]) => {
        const metadata = { ...child.metadata, finalizers: [recordFinalizer] };
        return [index, { ...child, metadata, status: { status, report: { recorded } } }];
      }),
    ),
  });
  assert.equal(await deleteExpiredBatch(expiring, withReport(false)), undefined);
  assert.deepEqual(deleted, []);
  await deleteExpiredBatch(expiring, withReport(true));
  assert.deepEqual(deleted, ["nightly"]);
});
