import { parseBatchChildName } from "../../../src/contract/id.ts";
import {
  type Controller,
  createSource,
  type Requeue,
  type Source,
} from "../../../src/controller-runtime/controller.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import type {
  BatchDependencies,
  BatchMemory,
  BatchReconciliation,
} from "./batch-reconciliation.ts";
import { decideBatch, deleteExpiredBatch } from "./decide-batch.ts";
import { observeBatch } from "./observe-batch.ts";
import { patchBatchStatus } from "./patch-batch-status.ts";
import { writeChildren } from "./write-children.ts";

/**
 * Creates the CompressionJobs of batches, as many at once as each batch allows, and reports their
 * state.
 */
export function createBatchController(dependencies: BatchDependencies): Controller {
  const { batches } = dependencies;
  const memories = new Map<string, BatchMemory>();
  return {
    name: "batch",
    workers: 2,
    sources: createBatchSources(dependencies),
    async reconcile(key, run) {
      const batch = batches.cache.get(key);
      if (batch !== undefined && batch.metadata.deletionTimestamp === undefined) {
        const client = dependencies.client.inNamespace(batch.metadata.namespace);
        const memory = recall(memories, key, batch.metadata.uid);
        return reconcileBatchResource({ ...dependencies, memory, client, batch, run });
      }
      memories.delete(key);
      return undefined;
    },
  };
}

/** Nothing of an earlier batch of that name. */
function recall(memories: Map<string, BatchMemory>, key: string, uid: string): BatchMemory {
  const known = memories.get(key);
  if (known?.uid === uid) return known;
  const empty = { uid, writtenAt: -Infinity, writeError: undefined, denied: new Map() };
  memories.set(key, empty);
  return empty;
}

/** CompressionJobs count by their names: a batch may wait for the deletion of another owner's. */
function createBatchSources({ batches, compressionJobs }: BatchDependencies): Source[] {
  return [
    createSource(batches, {
      mapToKeys: ({ metadata }) => [objectKey(metadata)],
      selectLane: ({ spec }) => (spec.cancel ? "urgent" : "normal"),
    }),
    createSource(compressionJobs, {
      mapToKeys: ({ metadata }) => {
        const child = parseBatchChildName(metadata.name);
        const { namespace } = metadata;
        return child === undefined ? [] : [objectKey({ namespace, name: child.batch })];
      },
      isGrouped: true,
    }),
  ];
}

async function reconcileBatchResource(
  reconciliation: BatchReconciliation,
): Promise<Requeue | undefined> {
  const { batch, client, clock, compressionJobs, memory } = reconciliation;
  const cache = compressionJobs.cache;
  const observed = await observeBatch(batch, client, cache, clock.date());
  const { writeError, denied } = memory;
  const { status, ...decision } = decideBatch({ ...observed, writeError, denied });
  // First: only a batch whose status says that it was suspended resumes its jobs.
  const writeWait = await patchBatchStatus(reconciliation, status);
  if (writeWait === undefined) denied.clear();
  const { hasDenied } = await writeChildren(reconciliation, decision);
  const waits = [
    writeWait,
    await deleteExpiredBatch(reconciliation, observed),
    hasDenied ? 1 : undefined,
  ].filter((wait) => wait !== undefined);
  return waits.length > 0 ? { requeueAfterMs: Math.min(...waits) } : undefined;
}
