import assert from "node:assert/strict";
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { keptFolder } from "../../../src/contract/worker-protocol/messages.ts";
import { projectWait } from "../../../src/contract/limits.ts";
import { listJobs, makeNewBatch, makeNewJob } from "../../records/new-jobs.ts";
import { project, startService } from "./local-service.ts";

const busy = "busy";

test("a job behind 6,000 of another project is the next to start", async (t) => {
  const service = await startService(t, { concurrency: 1 });
  const executor = await service.start();
  const jobs = Array.from({ length: 2000 }, () =>
    makeNewJob({ model: { source: "https://models.test/m.onnx", name: "completes" } }),
  );
  const ids: string[] = [];
  for (let batches = 0; batches < 3; batches++) {
    const batch = await service.records.batches.create(busy, makeNewBatch({ jobs }));
    ids.push(...batch.jobs.map((job) => job.id));
  }
  executor.submit(busy, ids);
  await service.until(ids[0] ?? "", (job) => job.startedAt !== null, busy);
  const [own = ""] = await service.create("completes");
  executor.submit(project, [own]);
  const position = executor.queuePosition(own) ?? Infinity;
  assert.ok(position <= 2, `The job has place ${position}`);
  await service.ended(own);
  const counts = await service.records.metrics.countByStatus();
  assert.ok((counts.get("Completed") ?? 0) <= 4);
  await executor.close();
});

test("jobs of a service that starts again wait in turns of their projects", async (t) => {
  const service = await startService(t, { concurrency: 1 });
  const [first = "", second = ""] = await service.createFor(busy, "waits", "completes");
  const [own = ""] = await service.create("completes");
  const executor = await service.start();
  const places = [first, own, second].map((id) => executor.queuePosition(id));
  assert.deepEqual(places, [undefined, 1, 2]);
});

test("a job that is cancelled while it waits leaves its place to the next", async (t) => {
  const service = await startService(t, { concurrency: 1 });
  const executor = await service.start();
  const [, gone = "", last = ""] = await service.create("waits", "completes", "completes");
  executor.submit(project, await listIds(service.records));
  assert.deepEqual([executor.queuePosition(gone), executor.queuePosition(last)], [1, 2]);
  await service.records.jobs.cancel(project, gone);
  assert.deepEqual([executor.queuePosition(gone), executor.queuePosition(last)], [undefined, 1]);
});

test("a project that keeps workers busy leaves one to the others", async (t) => {
  const service = await startService(t, { concurrency: 2 });
  await service.records.projects.ensure(busy);
  const executor = await service.start();
  const [first = "", second = ""] = await service.createFor(busy, "waits", "waits");
  executor.submit(busy, [first, second]);
  await service.until(first, (job) => job.startedAt !== null, busy);
  const [own = ""] = await service.create("completes");
  executor.submit(project, [own]);
  assert.equal((await service.ended(own)).job.status, "Completed");
  assert.equal((await service.records.jobs.find(busy, second))?.status, "Pending");
  await service.records.jobs.cancel(busy, first);
  await service.until(second, (job) => job.startedAt !== null, busy);
});

test("the only worker makes way for a project that has waited for ten minutes", async (t) => {
  let elapsed = 0;
  const service = await startService(t, { concurrency: 1, clock: () => elapsed });
  await service.records.projects.ensure(busy);
  const executor = await service.start();
  const [long = "", next = ""] = await service.createFor(busy, "waits", "waits");
  executor.submit(busy, [long, next]);
  await service.until(long, (job) => job.startedAt !== null, busy);
  const [own = ""] = await service.create("completes");
  executor.submit(project, [own]);
  elapsed += projectWait.seconds * 1000;
  assert.equal((await service.ended(own)).job.status, "Completed");
  const { job } = await service.until(long, ({ status }) => status === "Pending", busy);
  assert.equal(job.statusReason, "interrupted");
  await service.until(next, ({ startedAt }) => startedAt !== null, busy);
  await service.records.jobs.cancel(busy, next);
  const again = await service.until(long, ({ status }) => status !== "Pending", busy);
  assert.ok(again.lines.includes("Another worker takes over: attempt 2 begins"));
});

test("a job that is cancelled as it makes way keeps no work for another attempt", async (t) => {
  let elapsed = 0;
  const service = await startService(t, {
    concurrency: 1,
    clock: () => elapsed,
    executorRecords: (records) => {
      const end: typeof records.attempts.end = async (id, ...ended) => {
        if (id === long) await records.jobs.cancel(busy, id);
        await records.attempts.end(id, ...ended);
      };
      return { ...records, attempts: { ...records.attempts, end } };
    },
  });
  await service.records.projects.ensure(busy);
  const executor = await service.start();
  const [long = ""] = await service.createFor(busy, "waits");
  executor.submit(busy, [long]);
  await service.until(long, (_, lines) => lines.includes("waiting"), busy);
  await mkdir(join(service.workDirectory, long, keptFolder));
  const [own = ""] = await service.create("completes");
  executor.submit(project, [own]);
  elapsed += projectWait.seconds * 1000;
  assert.equal((await service.ended(long, busy)).job.status, "Cancelled");
  await service.ended(own);
  await assert.rejects(access(join(service.workDirectory, long)));
});

test("a job that has made way is given twice the time, and one that is alone is never stopped", async (t) => {
  let elapsed = 0;
  const service = await startService(t, { concurrency: 1, clock: () => elapsed });
  await service.records.projects.ensure(busy);
  const executor = await service.start();
  const [long = ""] = await service.createFor(busy, "waits");
  executor.submit(busy, [long]);
  await service.until(long, (job) => job.startedAt !== null, busy);
  elapsed += 10 * projectWait.seconds * 1000;
  for (const [attempt, waits] of [1, 2, 4, 8, 8].entries()) {
    const isBegun = `attempt ${attempt + 1} begins`;
    await service.until(
      long,
      ({ status }, lines) =>
        status !== "Pending" && (attempt === 0 || lines.some((line) => line.endsWith(isBegun))),
      busy,
    );
    const [own = ""] = await service.create("completes");
    executor.submit(project, [own]);
    elapsed += waits * projectWait.seconds * 1000;
    assert.equal((await service.ended(own)).job.status, "Completed");
  }
  const { lines } = await service.until(long, () => true, busy);
  assert.equal(lines.filter((line) => line.includes("preempted by")).length, 5);
});

test("a project that is alone has all workers", async (t) => {
  const service = await startService(t, { concurrency: 2 });
  const executor = await service.start();
  const ids = await service.create("waits", "waits");
  executor.submit(project, ids);
  for (const id of ids) await service.until(id, (job) => job.startedAt !== null);
});

async function listIds(records: Awaited<ReturnType<typeof startService>>["records"]) {
  const { jobs } = await listJobs(records, project, { limit: 10 });
  return jobs.map((job) => job.id).toSorted();
}
