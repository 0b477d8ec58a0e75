import { parseBatchChildName } from "../../../src/contract/id.ts";
import {
  type Controller,
  createSource,
  type Requeue,
  type Source,
} from "../../../src/controller-runtime/controller.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import type { BatchDependencies, BatchReconciliation } from "./batch-reconciliation.ts";
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
  const memory = {
    writtenAt: new Map<string, number>(),
    writeErrors: new Map<string, string>(),
    denials: new Map<string, ReadonlyMap<number, string>>(),
  };
  return {
    name: "batch",
    workers: 2,
    sources: createBatchSources(dependencies),
    async reconcile(key, run) {
      const batch = batches.cache.get(key);
      if (batch !== undefined && batch.metadata.deletionTimestamp === undefined) {
        const client = dependencies.client.inNamespace(batch.metadata.namespace);
        return reconcileBatchResource({ ...dependencies, ...memory, client, batch, run });
      }
      for (const known of Object.values(memory)) known.delete(key);
      return undefined;
    },
  };
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
  const { batch, client, clock, compressionJobs, writeErrors, denials } = reconciliation;
  const cache = compressionJobs.cache;
  const observed = await observeBatch(batch, client, cache, clock.date());
  const { uid } = batch.metadata;
  const writeError = writeErrors.get(objectKey(batch.metadata));
  const known = { writeError, denied: denials.get(uid) };
  const { status, ...decision } = decideBatch({ ...observed, ...known });
  // First: only a batch whose status says that it was suspended resumes its jobs.
  const writeWait = await patchBatchStatus(reconciliation, status);
  if (writeWait === undefined) denials.delete(uid);
  const { hasDenied } = await writeChildren(reconciliation, decision);
  const waits = [
    writeWait,
    await deleteExpiredBatch(reconciliation, observed),
    hasDenied ? 1 : undefined,
  ].filter((wait) => wait !== undefined);
  return waits.length > 0 ? { requeueAfterMs: Math.min(...waits) } : undefined;
}
