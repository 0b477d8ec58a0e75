import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { canTransition, isTerminal, type JobKind } from "../../src/contract/jobs/status.ts";
import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { applyEvent, type JobEvent } from "../../src/records/jobs/apply-event.ts";
import { makeJob } from "../support/make-job.ts";

const created = "2026-03-01T00:00:00.000Z";
const now = new Date("2026-03-01T00:01:00.000Z");
const digest = "a".repeat(64);

const reported = { seq: 1, at: created };

test("a job that ends with files that are not stored warns of them", () => {
  const artifact = { name: "model.onnx", kind: "model", bytes: 1, sha256: digest } as const;
  const job = makeJob({
    status: "Optimizing",
    artifacts: [
      { ...artifact, missing: true },
      { ...artifact, name: "report.json" },
    ],
  });
  const end = { ...reported, type: "result", outcome: "Completed" } as const;
  const { status, telemetry } = applyEvent(job, end, now);
  assert.equal(status, "Completed");
  assert.deepEqual(telemetry.warnings, [
    {
      code: "files_missing",
      message: "The backup that the records were restored from is older than model.onnx",
    },
  ]);
});
const anyEvent = fc.oneof(
  fc.constantFrom<JobEvent>(
    { ...reported, type: "status", status: "Sharding" },
    { ...reported, type: "status", status: "Optimizing" },
    { ...reported, type: "log", stream: "stdout", text: "x" },
    { ...reported, type: "model", bytes: 12, sha256: digest },
    { ...reported, type: "result", outcome: "Completed" },
    { ...reported, type: "result", outcome: "Cancelled" },
    {
      ...reported,
      type: "result",
      outcome: "Failed",
      error: { code: "model_invalid", message: "No" },
    },
    { ...reported, type: "result", outcome: "Failed" },
    { type: "waiting", reason: "unschedulable", message: "No node" },
    { type: "waiting", reason: "unschedulable", message: "No node", interrupts: true },
    { type: "cancel" },
    { type: "stopped" },
    { type: "restart" },
    { type: "failure", error: { code: "worker_killed", message: "Killed" } },
  ),
  fc
    .record({ name: fc.constantFrom("model.onnx", "report.json"), bytes: fc.nat() })
    .map((file): WorkerEvent => ({
      ...reported,
      type: "artifact",
      artifact: { ...file, kind: "model", sha256: digest },
    })),
  fc.double({ min: 0, max: 1, noNaN: true }).map((fraction): WorkerEvent => ({
    ...reported,
    type: "telemetry",
    telemetry: { progress: { fraction } },
  })),
);
const anyKind = fc.constantFrom<JobKind>("compress", "quantize");
const anyEvents = fc.array(anyEvent, { maxLength: 30 });

test("applyEvent() moves a job only along the transition table, with a time for each status", () => {
  fc.assert(
    fc.property(anyKind, anyEvents, (kind, events) => {
      const end = events.reduce((job, event) => applyEvent(job, event, now), makeJob({ kind }));
      const statuses = end.transitions.map((transition) => transition.status);
      assert.equal(statuses.at(-1), end.status);
      for (const [i, status] of statuses.slice(1).entries()) {
        assert.ok(canTransition(kind, statuses[i] ?? "Failed", status), statuses.join(" → "));
      }
      assert.equal(end.finishedAt !== null, isTerminal(end.status));
      assert.equal(end.error !== null, end.status === "Failed");
      jobSchema.parse(end);
    }),
  );
});

test("applyEvent() keeps the times of a job in order where clocks differ", () => {
  const ahead = new Date(now.getTime() + 3_600_000);
  const sharding = { ...reported, type: "status", status: "Sharding" } as const;
  const begun = applyEvent(makeJob(), sharding, ahead);
  const error = { code: "worker_killed", message: "Killed" } as const;
  const { transitions, finishedAt } = applyEvent(begun, { type: "failure", error }, now);
  const times = transitions.map(({ at }) => at);
  assert.deepEqual(times, times.toSorted());
  assert.equal(finishedAt, ahead.toISOString());
});

test("applyEvent() never changes a job that has ended", () => {
  fc.assert(
    fc.property(anyKind, anyEvents, anyEvents, (kind, events, later) => {
      const end = events.reduce((job, event) => applyEvent(job, event, now), makeJob({ kind }));
      fc.pre(isTerminal(end.status));
      assert.equal(
        later.reduce((job, event) => applyEvent(job, event, now), end),
        end,
      );
    }),
  );
});

test("applyEvent() gives the same job when an event comes twice", () => {
  fc.assert(
    fc.property(anyKind, anyEvents, anyEvent, (kind, events, event) => {
      const job = events.reduce((before, each) => applyEvent(before, each, now), makeJob({ kind }));
      const once = applyEvent(job, event, now);
      assert.deepEqual(applyEvent(once, event, now), once);
    }),
  );
});

test("applyEvent() keeps a job Cancelling until no process of it is left", () => {
  const cancelling = applyEvent(makeJob({ status: "Sharding" }), { type: "cancel" }, now);
  const finished = applyEvent(
    cancelling,
    { ...reported, type: "result", outcome: "Completed" },
    now,
  );
  assert.equal(finished.status, "Cancelling");
  assert.equal(applyEvent(finished, { type: "stopped" }, now).status, "Cancelled");
});

test("applyEvent() holds the gates against the telemetry when the job completes", () => {
  const size = { originalBytes: 100, resultBytes: 40, ratio: 0.4, predicted: false };
  const job = makeJob({
    kind: "quantize",
    status: "Optimizing",
    gateLimits: { maxSizeRatio: 0.3, minCosine: 0.9 },
    telemetry: { progress: { fraction: 0.9 }, size, warnings: [] },
  });
  const end = applyEvent(job, { ...reported, type: "result", outcome: "Completed" }, now);
  assert.deepEqual(end.gates, [
    { gate: "maxSizeRatio", limit: 0.3, level: "fail", actual: 0.4, baseline: null, passed: false },
    { gate: "minCosine", limit: 0.9, level: "fail", actual: null, baseline: null, passed: false },
  ]);
  assert.equal(end.statusReason, "gates_failed");
  assert.equal(end.telemetry.progress.fraction, 1);
});

test("applyEvent() completes a dry run without holding its gates", () => {
  const job = makeJob({
    kind: "quantize",
    status: "Optimizing",
    dryRun: true,
    gateLimits: { minCosine: 0.9 },
  });
  const end = applyEvent(job, { ...reported, type: "result", outcome: "Completed" }, now);
  assert.deepEqual([end.status, end.statusReason, end.gates], ["Completed", "completed", []]);
  assert.equal(end.telemetry.progress.fraction, 1);
});

test("applyEvent() forgets figures and files of the attempt before", () => {
  const job = makeJob({
    status: "Optimizing",
    telemetry: { progress: { fraction: 0.7 }, stageSeconds: { fetch: 1 }, warnings: [] },
    artifacts: [{ name: "model.onnx", kind: "model", bytes: 1, sha256: digest }],
  });
  const again = applyEvent(job, { type: "restart" }, now);
  assert.deepEqual(again.telemetry, { progress: { fraction: 0 }, warnings: [] });
  assert.deepEqual(again.artifacts, []);
  assert.equal(again.status, "Optimizing");
});
