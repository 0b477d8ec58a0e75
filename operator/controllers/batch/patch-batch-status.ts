import { isDeepStrictEqual } from "node:util";
import type { BatchResourceStatus } from "../../../src/contract/custom-resources/batch-resource.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import { batches as batchType } from "../../../src/resources/custom-resources.ts";
import type { BatchReconciliation } from "./batch-reconciliation.ts";
import { recordBatchEvents } from "./record-batch-events.ts";

/** A change of figures alone is written no more often. */
const writeEveryMs = 1_000;

/** Writes the status where it changes. The milliseconds to wait where it is too early. */
export async function patchBatchStatus(
  reconciliation: BatchReconciliation,
  next: BatchResourceStatus,
): Promise<number | undefined> {
  const { client, batch, batches, clock, events, run, writtenAt } = reconciliation;
  const { name, resourceVersion } = batch.metadata;
  const key = objectKey(batch.metadata);
  if (isDeepStrictEqual(batch.status, next)) return undefined;
  const waitMs = (writtenAt.get(key) ?? -Infinity) + writeEveryMs - clock.now();
  if (waitMs > 0 && isDeepStrictEqual(batch.status?.conditions, next.conditions)) return waitMs;
  const patch = { status: { ...nullRemovedFields(batch.status ?? {}, next), ...next } };
  const options = { subresource: "status", resourceVersion } as const;
  run.expectWrite(batches, await client.patch(batchType, name, patch, options));
  writtenAt.set(key, clock.now());
  recordBatchEvents(events, batch, next);
  return undefined;
}

/** A merge patch deletes the fields that are null in it. */
function nullRemovedFields(before: object, next: object): Record<string, null> {
  const removed = Object.keys(before).filter((field) => !(field in next));
  return Object.fromEntries(removed.map((field) => [field, null]));
}
