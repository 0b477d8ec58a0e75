import type { BatchResourceStatus } from "../../../src/contract/batch-resource.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import { type BatchObject, batches } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";

/** Tells in events what a new status says for the first time. */
export function recordBatchEvents(
  events: EventRecorder,
  batch: Stored<BatchObject>,
  next: BatchResourceStatus,
): void {
  const recordedFailures = new Set(batch.status?.failures?.map(({ job }) => job));
  for (const { job, reason, message } of next.failures ?? []) {
    if (!recordedFailures.has(job))
      events.record(batches, batch, {
        type: "Warning",
        reason: "JobFailed",
        message: `${job}: ${reason}: ${message}`,
      });
  }
  if (next.status === batch.status?.status || !isTerminal(next.status)) return;
  events.record(batches, batch, {
    type: next.status === "Failed" ? "Warning" : "Normal",
    reason: next.status,
    message: next.statusMessage ?? `${next.jobs} jobs are Completed`,
  });
}
