import { isDeepStrictEqual } from "node:util";
import type { BatchResourceStatus } from "../../../src/contract/batch-resource.ts";
import {
  type BatchObject,
  batches as batchType,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { isAlreadyExists, isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { Clock } from "../../../src/controller-runtime/clock.ts";
import {
  type Controller,
  type ReconcileRun,
  type Requeue,
  createSource,
} from "../../../src/controller-runtime/controller.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";
import { errorMessageWithCauses } from "../../../src/log/error-message.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import { recordBatchEvents } from "./record-batch-events.ts";
import { childCompressionJob } from "../../../src/resources/child-compression-job.ts";
import { decideBatch, type ChildPatch } from "./decide-batch.ts";
import { observeBatch } from "./observe-batch.ts";

export interface BatchControllerOptions {
  readonly client: KubernetesClient;
  readonly batches: WatchedResource<BatchObject>;
  /** Its cache keeps of each at least the metadata, `spec.cancel`, `spec.suspend` and the status. */
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

const callsAtOnce = 8;
/** Figures of a batch that goes on are written no more often. */
const writeEveryMs = 1_000;

/** Makes the CompressionJobs of batches, as many at once as each batch allows, and tells what becomes of them. */
export function createBatchController(options: BatchControllerOptions): Controller {
  const { batches, compressionJobs } = options;
  const writtenAt = new Map<string, number>();
  return {
    name: "batch",
    workers: 2,
    sources: [
      createSource(batches, {
        mapToKeys: ({ metadata }) => [metadata.name],
        selectLane: ({ spec }) => (spec.cancel ? "urgent" : "normal"),
      }),
      // By their names: batches wake, too, when a name that another resource had is free.
      createSource(compressionJobs, {
        mapToKeys: ({ metadata }) => /^(.+)-\d{4}$/.exec(metadata.name)?.slice(1) ?? [],
        isGrouped: true,
      }),
    ],
    async reconcile(name, run) {
      const batch = batches.cache.get(name);
      if (batch !== undefined && batch.metadata.deletionTimestamp === undefined) {
        return reconcileBatchResource({ ...options, batch, run, writtenAt });
      }
      writtenAt.delete(name);
      return undefined;
    },
  };
}

/** One look at a batch. */
interface BatchReconciliation extends BatchControllerOptions {
  readonly batch: Stored<BatchObject>;
  readonly run: ReconcileRun;
  /** When the status of each batch was written last, by its name. */
  readonly writtenAt: Map<string, number>;
}

async function reconcileBatchResource(
  reconciliation: BatchReconciliation,
): Promise<Requeue | undefined> {
  const { batch, client, clock, compressionJobs } = reconciliation;
  const observed = await observeBatch(batch, {
    client,
    compressionJobs: compressionJobs.cache,
    now: clock.date(),
  });
  const { create, childPatches, status } = decideBatch(observed);
  // Before all else: that the batch is suspended must be known to whoever resumes its jobs.
  const writeWait = await patchBatchStatus(reconciliation, status);
  const failures = await callAll([
    ...create.map((index) => () => createChild(reconciliation, index)),
    ...childPatches.map((childPatch) => () => patchChild(reconciliation, childPatch)),
  ]);
  if (failures.length > 0) throw failures[0];
  const waits = [writeWait, await deleteExpiredBatch(reconciliation)].filter(
    (wait) => wait !== undefined,
  );
  return waits.length > 0 ? { requeueAfterMs: Math.min(...waits) } : undefined;
}

/** Makes all calls, some at once, and gives the errors of those that failed. */
async function callAll(calls: readonly (() => Promise<void>)[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (let start = 0; start < calls.length; start += callsAtOnce) {
    const results = await Promise.allSettled(
      calls.slice(start, start + callsAtOnce).map((call) => call()),
    );
    failures.push(
      ...results.flatMap((result) => (result.status === "rejected" ? [result.reason] : [])),
    );
    if (failures.length > 0) break;
  }
  return failures;
}

async function createChild(
  { client, batch, compressionJobs, events, run }: BatchReconciliation,
  index: number,
): Promise<void> {
  try {
    run.expectWrite(
      compressionJobs,
      await client.create(compressionJobType, childCompressionJob(batch, index)),
    );
  } catch (error) {
    // Whoever made it: the batch is looked at again when the cache has it.
    if (isAlreadyExists(error)) return;
    events.record(batchType, batch, {
      type: "Warning",
      reason: "FailedCreate",
      message: errorMessageWithCauses(error),
    });
    throw error;
  }
}

async function patchChild(
  { client, compressionJobs, run }: BatchReconciliation,
  { child, spec }: ChildPatch,
): Promise<void> {
  const { name, uid } = child.metadata;
  try {
    run.expectWrite(
      compressionJobs,
      await client.patch(compressionJobType, name, { metadata: { uid }, spec }),
    );
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Gives how long to wait, in milliseconds, where it is too early to write. */
async function patchBatchStatus(
  reconciliation: BatchReconciliation,
  next: BatchResourceStatus,
): Promise<number | undefined> {
  const { client, batch, batches, clock, events, run, writtenAt } = reconciliation;
  const { name, resourceVersion } = batch.metadata;
  if (isDeepStrictEqual(batch.status, next)) return undefined;
  const waitMs = (writtenAt.get(name) ?? -Infinity) + writeEveryMs - clock.now();
  // Conditions tell of everything but figures.
  if (waitMs > 0 && isDeepStrictEqual(batch.status?.conditions, next.conditions)) return waitMs;
  const patch = { status: { ...nullRemovedFields(batch.status ?? {}, next), ...next } };
  run.expectWrite(
    batches,
    await client.patch(batchType, name, patch, { subresource: "status", resourceVersion }),
  );
  writtenAt.set(name, clock.now());
  recordBatchEvents(events, batch, next);
  return undefined;
}

/** A merge patch deletes what is null in it. */
function nullRemovedFields(before: object, next: object): Record<string, null> {
  const removed = Object.keys(before).filter((field) => !(field in next));
  return Object.fromEntries(removed.map((field) => [field, null]));
}

/** Gives how long the batch still has to be kept, in milliseconds, where it has an end. */
async function deleteExpiredBatch({
  client,
  batch,
  clock,
}: BatchReconciliation): Promise<number | undefined> {
  const { ttlSecondsAfterFinished } = batch.spec;
  const { finishedAt } = batch.status ?? {};
  if (ttlSecondsAfterFinished === undefined || finishedAt === undefined) return undefined;
  const waitMs = Date.parse(finishedAt) + ttlSecondsAfterFinished * 1_000 - clock.date().getTime();
  if (waitMs > 0) return waitMs;
  const { name, uid } = batch.metadata;
  await client.delete(batchType, name, { propagationPolicy: "Background", uid });
  return undefined;
}
