import { jobStateCodes } from "../../../src/contract/batch-resource.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import {
  type BatchObject,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { Reflector } from "../../../src/kubernetes/reflector.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import { recordedJobState } from "./job-states.ts";

export interface BatchSources {
  readonly client: KubernetesClient;
  readonly compressionJobs: Reflector<CompressionJobObject>;
  readonly now: Date;
}

/** Reads a batch's world from the cache, and asks the API server about children that are missing there. */
export async function observeBatch(
  batch: Stored<BatchObject>,
  sources: BatchSources,
): Promise<ObservedBatchState> {
  const { client, compressionJobs, now } = sources;
  const children = new Map<number, Stored<CompressionJobObject>>();
  const nameConflicts = new Map<number, Stored<CompressionJobObject>>();
  const missing: number[] = [];
  for (let index = 0; index < batchJobCount(batch); index++) {
    const existing = compressionJobs.get(batchChildName(batch.metadata.name, index));
    if (existing !== undefined)
      (isBatchChild(existing, batch) ? children : nameConflicts).set(index, existing);
    if (!children.has(index) && recordedJobState(batch, index) === jobStateCodes.created)
      missing.push(index);
  }
  const deleted = new Set<number>();
  for (const index of missing) {
    if (!(await childExists(client, batch, index))) deleted.add(index);
  }
  return { batch, children, deleted, nameConflicts, now };
}

function isBatchChild(
  { metadata }: Stored<CompressionJobObject>,
  batch: Stored<BatchObject>,
): boolean {
  return (
    metadata.ownerReferences?.some(
      ({ controller, uid }) => controller && uid === batch.metadata.uid,
    ) ?? false
  );
}

async function childExists(
  client: KubernetesClient,
  batch: Stored<BatchObject>,
  index: number,
): Promise<boolean> {
  try {
    return isBatchChild(
      await client.get(compressionJobType, batchChildName(batch.metadata.name, index)),
      batch,
    );
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
