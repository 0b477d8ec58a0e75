import assert from "node:assert/strict";
import test from "node:test";
import { FairQueue } from "../../../src/executors/local/fair-queue.ts";

function names(project: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${project}${i}`);
}

function takeAll(queue: FairQueue): string[] {
  const taken: string[] = [];
  for (let job = queue.take(); job !== undefined; job = queue.take()) taken.push(job);
  return taken;
}

test("a job behind 6,000 of another project starts after at most one of them", () => {
  const queue = new FairQueue();
  queue.add("a", names("a", 6000));
  for (let i = 0; i < 100; i++) queue.take();
  queue.add("b", ["b0"]);
  assert.ok((queue.positionOf("b0") ?? Infinity) <= 2);
  assert.ok([queue.take(), queue.take()].includes("b0"));
});

test("a project waits while others have jobs running and it has none", () => {
  let now = 0;
  const queue = new FairQueue(undefined, () => now);
  queue.add("a", names("a", 2));
  queue.take();
  queue.add("b", ["b0"]);
  now = 5;
  assert.equal(queue.longestWait(), 5);
  assert.deepEqual(queue.findYoungest(), { jobId: "a0", ranMs: 5 });
  queue.putBack("a0");
  now = 7;
  assert.equal(queue.take(), "b0");
  assert.equal(queue.longestWait(), 2);
  queue.end("b0");
  assert.deepEqual(takeAll(queue), ["a1", "a0"]);
  assert.equal(queue.longestWait(), 0);
});

test("of the project with most running jobs the youngest makes way", () => {
  const queue = new FairQueue();
  queue.add("a", names("a", 3));
  queue.add("b", ["b0"]);
  for (const expected of ["a0", "b0", "a1"]) assert.equal(queue.take(), expected);
  assert.equal(queue.findYoungest()?.jobId, "a1");
});

test("projects take turns, and the jobs of each start in their order", () => {
  const queue = new FairQueue();
  queue.add("a", names("a", 3));
  queue.add("b", names("b", 2));
  assert.deepEqual(takeAll(queue), ["a0", "b0", "a1", "b1", "a2"]);
});

test("a project that was idle has not saved up turns", () => {
  const queue = new FairQueue();
  queue.add("b", ["early"]);
  queue.take();
  queue.add("a", names("a", 100));
  for (let i = 0; i < 50; i++) queue.take();
  queue.add("b", names("b", 50));
  const next = Array.from({ length: 10 }, () => queue.take() ?? "");
  assert.ok(next.filter((job) => job.startsWith("b")).length <= 6);
});

test("jobs that come one by one have no advantage over those that wait together", () => {
  const queue = new FairQueue();
  queue.add("a", names("a", 100));
  const taken: string[] = [];
  for (let i = 0; i < 20; i++) {
    if (!taken.at(-1)?.startsWith("a")) queue.add("b", [`b${i}`]);
    taken.push(queue.take() ?? "");
  }
  assert.ok(taken.filter((job) => job.startsWith("a")).length >= 10);
});

test("the place of a job is the number of the start that it gets, also behind removed jobs", () => {
  const queue = new FairQueue();
  queue.add("a", names("a", 40));
  queue.add("b", names("b", 7));
  queue.add("c", names("c", 20));
  for (let i = 0; i < 5; i++) queue.take();
  for (const removed of ["a9", "a39", "b3", "c19"]) queue.remove(removed);
  queue.add("b", ["late"]);
  queue.take();
  const all = [...names("a", 40), ...names("b", 7), ...names("c", 20), "late"];
  const positions = new Map(all.map((job) => [job, queue.positionOf(job)]));
  const order = takeAll(queue);
  for (const [i, job] of order.entries()) assert.equal(positions.get(job), i + 1, job);
  assert.equal(positions.get("a9"), undefined);
});

test("100,000 jobs are queued, placed and taken in a moment", () => {
  const queue = new FairQueue();
  const all = names("a", 100_000);
  const before = performance.now();
  queue.add("a", all);
  for (const job of all) queue.positionOf(job);
  assert.deepEqual(takeAll(queue), all);
  assert.ok(performance.now() - before < 5_000);
});
