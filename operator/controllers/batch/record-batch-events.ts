import type { BatchResourceStatus } from "../../../src/contract/custom-resources/batch-resource.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { type BatchObject, batches } from "../../../src/resources/custom-resources.ts";

/** Records events for new failures and for the end of a batch. */
export function recordBatchEvents(
  events: EventRecorder,
  batch: Stored<BatchObject>,
  next: BatchResourceStatus,
): void {
  recordNewFailures(events, batch, next);
  recordBatchEnd(events, batch, next);
}

function recordNewFailures(
  events: EventRecorder,
  batch: Stored<BatchObject>,
  next: BatchResourceStatus,
): void {
  for (const { job, reason: why, message } of newFailures(batch, next)) {
    const reason: EventReason = "JobFailed";
    events.record(batches, batch, {
      type: "Warning",
      reason,
      message: `${job}: ${why}: ${message}`,
    });
  }
}

function recordBatchEnd(
  events: EventRecorder,
  batch: Stored<BatchObject>,
  next: BatchResourceStatus,
): void {
  if (next.status === batch.status?.status || !isTerminal(next.status)) return;
  const reason: EventReason = next.status;
  events.record(batches, batch, {
    type: next.status === "Failed" ? "Warning" : "Normal",
    reason,
    message: next.statusMessage ?? `${next.jobs} jobs are Completed`,
  });
}

function newFailures({ status }: BatchObject, next: BatchResourceStatus) {
  const recorded = new Set(status?.failures?.map(({ job }) => job));
  return (next.failures ?? []).filter(({ job }) => !recorded.has(job));
}
