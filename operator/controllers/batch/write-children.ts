import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { textLimits } from "../../../src/contract/limits.ts";
import { truncate } from "../../../src/contract/text/truncate.ts";
import { isAlreadyExists, isDenial, isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { errorMessageWithCauses } from "../../../src/log/error-message.ts";
import { childCompressionJob } from "../../../src/resources/child-compression-job.ts";
import {
  batches as batchType,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import type { BatchReconciliation } from "./batch-reconciliation.ts";
import type { ChildPatch } from "./decide-batch.ts";

const callsAtOnce = 8;

/**
 * Creates and patches CompressionJobs of the batch, some at once, and throws the first error.
 * @returns whether the API server denied some, which have failed
 */
export async function writeChildren(
  reconciliation: BatchReconciliation,
  { create, childPatches }: { create: readonly number[]; childPatches: readonly ChildPatch[] },
): Promise<{ readonly hasDenied: boolean }> {
  const failures = await callAll([
    ...create.map((index) => () => createChild(reconciliation, index)),
    ...childPatches.map((childPatch) => () => patchChild(reconciliation, childPatch)),
  ]);
  const { memory } = reconciliation;
  if (failures.length === 0) {
    memory.writeError = undefined;
    return { hasDenied: create.some((index) => memory.denied.has(index)) };
  }
  const message = errorMessageWithCauses(failures[0]);
  memory.writeError = truncate(message, textLimits.statusMessage);
  throw failures[0];
}

/** The errors of the first group of calls with any; the calls after it are not made. */
async function callAll(calls: readonly (() => Promise<void>)[]): Promise<unknown[]> {
  for (let start = 0; start < calls.length; start += callsAtOnce) {
    const group = calls.slice(start, start + callsAtOnce);
    const results = await Promise.allSettled(group.map((call) => call()));
    const rejected = results.filter((result) => result.status === "rejected");
    if (rejected.length > 0) return rejected.map(({ reason }) => reason);
  }
  return [];
}

async function createChild(
  { client, batch, compressionJobs, events, run, memory }: BatchReconciliation,
  index: number,
): Promise<void> {
  try {
    const child = await client.create(compressionJobType, childCompressionJob(batch, index));
    run.expectWrite(compressionJobs, child);
  } catch (error) {
    // The batch is reconciled again when the cache has it.
    if (isAlreadyExists(error)) return;
    const reason: EventReason = "FailedCreate";
    const message = errorMessageWithCauses(error);
    events.record(batchType, batch, { type: "Warning", reason, message });
    if (!isDenial(error)) throw error;
    memory.denied.set(index, message);
  }
}

async function patchChild(
  { client, compressionJobs, run }: BatchReconciliation,
  { child, spec }: ChildPatch,
): Promise<void> {
  const { name, uid } = child.metadata;
  try {
    const patched = await client.patch(compressionJobType, name, { metadata: { uid }, spec });
    run.expectWrite(compressionJobs, patched);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
