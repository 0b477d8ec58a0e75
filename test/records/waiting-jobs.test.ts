import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

const at = "2026-03-01T00:00:00.000Z";
const projects = ["default", "team-a"];
const error = { code: "worker_crashed", message: "It crashed" } as const;

type Step = (records: Records, job: { readonly project: string; readonly id: string }) => unknown;

/** What can happen to a project or to one of its jobs. */
const steps: Readonly<Record<string, Step>> = {
  create: ({ jobs }, { project }) => jobs.create(project, makeNewJob()),
  createBatch: ({ batches }, { project }) =>
    batches.create(project, makeNewBatch({ failFast: true })),
  begin: ({ attempts }, { id }) => attempts.begin(id, "hash"),
  work: ({ workers }, { id }) =>
    workers.recordEvents(id, 1, [{ seq: 1, at, type: "status", status: "Sharding" }]),
  interrupt: ({ cluster }, { id }) =>
    cluster.recordEvents(id, [
      { type: "waiting", reason: "unschedulable", message: "", interrupts: true },
    ]),
  fail: ({ attempts }, { id }) => attempts.end(id, 1, { error, lines: [] }),
  cancel: ({ jobs }, { project, id }) => jobs.cancel(project, id),
  delete: ({ deletions }, { project, id }) => deletions.deleteJob({ project, id }),
  expire: (records) => records.deleteExpired({ jobs: 5 }),
};

const anyCourse = fc.array(
  fc.record({
    step: fc.constantFrom(...Object.keys(steps)),
    project: fc.constantFrom(...projects),
    job: fc.nat(),
  }),
  { minLength: 10, maxLength: 40 },
);

async function countBoth({ usage, jobs }: Records) {
  const counts = projects.map(async (project) => ({
    counted: (await usage.countJobs(project)).waiting,
    found: (await jobs.count(project, {})).Pending,
  }));
  return Promise.all(counts);
}

async function listIds({ jobs }: Records, project: string): Promise<string[]> {
  const { documents } = await jobs.list(project, { limit: 200 });
  return documents.map((text) => String((JSON.parse(text) as { id: unknown }).id));
}

test("the number of waiting jobs is that of a scan, whatever happens to them", async () => {
  await fc.assert(
    fc.asyncProperty(anyCourse, async (course) => {
      const records = await openTestRecords();
      for (const { step, project, job } of course) {
        const ids = await listIds(records, project);
        const id = ids[job % ids.length] ?? "";
        // Some steps are refused, such as the deletion of a job that waits.
        await Promise.resolve(steps[step]?.(records, { project, id })).catch(() => {});
        for (const { counted, found } of await countBoth(records)) assert.equal(counted, found);
      }
      await records.close();
    }),
    { numRuns: 12 },
  );
});

test("a job that waits again is none that waits for its first worker", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  assert.notEqual(await records.metrics.findOldestWaitingTime(), undefined);
  const job = { project: "default", id };
  for (const step of ["begin", "work", "interrupt"]) await steps[step]?.(records, job);
  assert.equal((await records.jobs.find("default", id))?.status, "Pending");
  assert.equal(await records.metrics.findOldestWaitingTime(), undefined);
  await records.close();
});
