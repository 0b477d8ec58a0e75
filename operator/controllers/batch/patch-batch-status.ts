import { isDeepStrictEqual } from "node:util";
import type { BatchReconciliation } from "./batch-reconciliation.ts";
import type { BatchResourceStatus } from "../../../src/contract/custom-resources/batch-resource.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { formatCount } from "../../../src/contract/text/format-count.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import {
  batches as batchType,
  batches,
  type BatchObject,
} from "../../../src/resources/custom-resources.ts";

/** A change of figures alone is written no more often. */
const writeEveryMs = 1_000;

/** Writes the status where it changes. The milliseconds to wait where it is too early. */
export async function patchBatchStatus(
  reconciliation: BatchReconciliation,
  next: BatchResourceStatus,
): Promise<number | undefined> {
  const { client, batch, batches, clock, events, run, memory } = reconciliation;
  const { name, resourceVersion } = batch.metadata;
  if (isDeepStrictEqual(batch.status, next)) return undefined;
  const waitMs = memory.writtenAt + writeEveryMs - clock.now();
  if (waitMs > 0 && isDeepStrictEqual(batch.status?.conditions, next.conditions)) return waitMs;
  const patch = { status: { ...nullRemovedFields(batch.status ?? {}, next), ...next } };
  const options = { subresource: "status", resourceVersion } as const;
  run.expectWrite(batches, await client.patch(batchType, name, patch, options));
  memory.writtenAt = clock.now();
  recordBatchEvents(events, batch, next);
  return undefined;
}

/** A merge patch deletes the fields that are null in it. */
function nullRemovedFields(before: object, next: object): Record<string, null> {
  const removed = Object.keys(before).filter((field) => !(field in next));
  return Object.fromEntries(removed.map((field) => [field, null]));
}

/** Records events for new failures and for the end of a batch. */
function recordBatchEvents(
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
    message: next.statusMessage ?? `${formatCount(next.jobs ?? 0, "job is", "jobs are")} Completed`,
  });
}

function newFailures({ status }: BatchObject, next: BatchResourceStatus) {
  const recorded = new Set(status?.failures?.map(({ job }) => job));
  return (next.failures ?? []).filter(({ job }) => !recorded.has(job));
}
