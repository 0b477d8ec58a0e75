import assert from "node:assert/strict";
import test from "node:test";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import type { Records } from "../../src/records/open-records.ts";
import { type DescribedSpan, describeJobTrace } from "../../src/tracing/describe-job-trace.ts";
import { makeNewJob, openTestRecords } from "../records/new-jobs.ts";
import { completed, numbered, sharedJob } from "../records/shared-job.ts";

const optimizing: UnnumberedEvent = { type: "status", status: "Optimizing" };

async function describe(records: Records, id: string): Promise<DescribedSpan> {
  const traced = await records.traces.findJob(id);
  assert.ok(traced);
  return describeJobTrace(traced);
}

function endedStage(name: "fetch" | "optimize", seconds: number): UnnumberedEvent {
  return { type: "telemetry", telemetry: {}, stage: { name, seconds } };
}

function listNames(span: DescribedSpan): unknown[] {
  return [span.name, ...span.children.map(listNames)];
}

test("an attempt that takes over has a link to the one before it", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash-1");
  await records.workers.recordEvents(id, 1, numbered(1, endedStage("fetch", 0)));
  await records.attempts.end(id, 1, { error: null, lines: [] });
  await records.attempts.begin(id, "hash-2");
  await records.workers.recordEvents(id, 2, numbered(1, optimizing, completed));
  const job = await describe(records, id);
  assert.deepEqual(listNames(job), ["compress job", ["wait"], ["attempt", ["fetch"]], ["attempt"]]);
  const [, first, second] = job.children;
  assert.equal(second?.repeats, first);
  assert.equal(first?.repeats, undefined);
  assert.equal(job.error, undefined);
});

test("a stage stays within its attempt, whatever the worker's clock says", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  const [early, late, end] = numbered(1, endedStage("fetch", 1e300), optimizing, completed);
  assert.ok(early && late && end);
  const optimized = { ...endedStage("optimize", 5), seq: 3, at: "9999-12-31T23:59:59.999Z" };
  await records.workers.recordEvents(id, 1, [
    { ...early, at: "0001-01-01T00:00:00.000Z" },
    late,
    { ...optimized },
    { ...end, seq: 4 },
  ]);
  const [, attempt] = (await describe(records, id)).children;
  assert.ok(attempt);
  for (const { start, end: at } of attempt.children) {
    assert.ok(attempt.start <= start && start <= at && at <= attempt.end);
  }
  assert.equal(attempt.children.length, 2);
});

test("pods that share a job are attempts at their steps", async () => {
  const { records, id } = await sharedJob();
  const parts = [["shard", 0] as const, ["optimize", 0] as const, ["optimize", 1] as const];
  for (const [step, index] of parts) {
    const pod = { podUid: `${step}-${index}`, part: { step, index } };
    const attempt = await records.attempts.beginPodAttempt(id, pod);
    await records.workers.recordEvents(id, attempt ?? 0, numbered(1, optimizing, completed));
  }
  const job = await describe(records, id);
  const attempts = job.children.filter(({ name }) => name.startsWith("attempt"));
  assert.deepEqual(
    attempts.map(({ name, attributes }) => [name, attributes["mos.share"]]),
    [
      ["attempt shard", 0],
      ["attempt optimize", 0],
      ["attempt optimize", 1],
    ],
  );
  assert.ok(attempts.every(({ repeats }) => repeats === undefined));
});

test("a job that failed has its error, one that was cancelled when it stopped", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  const error = { code: "model_invalid", message: "No" } as const;
  const failed = { type: "result", outcome: "Failed", error } as const;
  await records.workers.recordEvents(id, 1, numbered(1, optimizing, failed));
  assert.equal((await describe(records, id)).error, "model_invalid");

  const running = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(running.id, "hash");
  await records.jobs.cancel("default", running.id);
  await records.attempts.end(running.id, 1, { error: null, lines: [] });
  const cancelled = await describe(records, running.id);
  assert.deepEqual(listNames(cancelled), ["compress job", ["wait"], ["attempt"], ["cancel"]]);
  assert.equal(cancelled.error, undefined);
  assert.equal(cancelled.attributes["mos.status"], "Cancelled");
});
