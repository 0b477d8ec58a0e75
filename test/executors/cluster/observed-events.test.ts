import assert from "node:assert/strict";
import test from "node:test";
import { eventsFromStatus } from "../../../src/executors/cluster/events-from-status.ts";
import { reportFromJob } from "../../../src/executors/cluster/job-report.ts";
import type { CompressionJobStatus } from "../../../src/contract/custom-resources/compression-job.ts";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { applyEvent } from "../../../src/records/jobs/apply-event.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { makeJob } from "../../support/make-job.ts";

const now = new Date("2026-01-01T00:01:00.000Z");

function observe(job: Job, status: CompressionJobStatus): Job {
  return eventsFromStatus(status, job).reduce(
    (known, event) => applyEvent(known, event, event.at === undefined ? now : new Date(event.at)),
    job,
  );
}

/** The status that the operator derives from the report on a job. */
function statusAfter(job: Job): CompressionJobStatus {
  const { status, statusReason, statusMessage } = job;
  const report = reportFromJob(job, false);
  const { transitions, error } = report;
  return { status, statusReason, statusMessage, transitions, error, report };
}

test("observedEvents() rebuilds a record from the status that was made of it", () => {
  const artifact = {
    name: "model.onnx",
    kind: "model" as const,
    bytes: 270,
    sha256: "a".repeat(64),
  };
  const size = { originalBytes: 1000, resultBytes: 270, ratio: 0.27, predicted: false };
  const steps = [
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "telemetry", telemetry: { progress: { fraction: 0.5 }, size } },
    { type: "artifact", artifact },
    { type: "result", outcome: "Completed" },
  ] as const;
  let job = makeJob({ gateLimits: { maxSizeRatio: 0.2 } });
  for (const [i, step] of steps.entries()) {
    job = applyEvent(job, step, new Date(now.getTime() + i * 1000));
    const status = statusAfter(job);
    const rebuilt = observe(makeJob({ gateLimits: { maxSizeRatio: 0.2 } }), status);
    // Workers report their figures and files again to a service that lost them.
    const { telemetry, artifacts } = isTerminal(job.status) ? job : makeJob();
    const expected = { ...job, telemetry, artifacts };
    assert.deepEqual(
      { ...rebuilt, updatedAt: job.updatedAt },
      expected,
      `Not after event ${i + 1}`,
    );
  }
  assert.equal(job.gates[0]?.passed, false);
});

test("observedEvents() reports what a record knows already, without effect", () => {
  const job = makeJob({ status: "Optimizing", startedAt: now.toISOString() });
  assert.deepEqual(observe(job, { status: "Sharding" }), job);
  assert.deepEqual(
    observe(job, { status: "Pending", statusReason: "starting", statusMessage: "It starts" }),
    job,
  );
});

test("observedEvents() takes a job that the operator completed through every status", () => {
  const at = "2026-01-01T00:00:30.000Z";
  const job = observe(makeJob(), {
    status: "Completed",
    transitions: [{ status: "Completed", at }],
  });
  assert.deepEqual(
    job.transitions.slice(1).map((transition) => [transition.status, transition.at]),
    [
      ["Sharding", at],
      ["Optimizing", at],
      ["Completed", at],
    ],
  );
});

test("observedEvents() takes a job back to Pending whose pods were taken away, once", () => {
  const at = "2026-01-01T00:00:30.000Z";
  const interruption = {
    status: "Pending" as const,
    statusReason: "waiting_for_queue",
    statusMessage: 'Waiting to be admitted again by the queue "gpus"',
    transitions: [{ status: "Pending" as const, at }],
  };
  const working = applyEvent(makeJob(), { type: "status", status: "Optimizing" }, now);
  const job = observe(working, interruption);
  assert.deepEqual([job.status, job.statusReason], ["Pending", "waiting_for_queue"]);
  assert.equal(job.transitions.at(-1)?.at, at);
  const again = applyEvent(job, { type: "status", status: "Optimizing" }, now);
  assert.deepEqual(observe(again, interruption), again);
});

test("observedEvents() cancels a job whose work ended while it was being cancelled", () => {
  const job = makeJob({ status: "Cancelling" });
  assert.equal(observe(job, { status: "Completed" }).status, "Cancelled");
});

test("observedEvents() gives a failure its code", () => {
  const observed = observe(makeJob(), {
    status: "Failed",
    statusReason: "out_of_memory",
    statusMessage: "It was too much",
  });
  assert.deepEqual(observed.error, { code: "out_of_memory", message: "It was too much" });
});
