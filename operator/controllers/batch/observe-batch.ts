import { jobStateCodes } from "../../../src/contract/custom-resources/batch-resource.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import type { ObjectReader } from "../../../src/controller-runtime/watch-resource.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { objectKey } from "../../../src/kubernetes/object-key.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import {
  type BatchObject,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import { recordedJobState } from "./job-states.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

type ChildMap = Map<number, Stored<CompressionJobObject>>;

/** Reads a batch's jobs from the cache, and from the API server those that are missing there. */
export async function observeBatch(
  batch: Stored<BatchObject>,
  client: KubernetesClient,
  compressionJobs: ObjectReader<CompressionJobObject>,
  now: Date,
): Promise<ObservedBatchState> {
  const children: ChildMap = new Map();
  const nameConflicts: ChildMap = new Map();
  const deleted = new Set<number>();
  for (let index = 0; index < batchJobCount(batch); index++) {
    const { namespace } = batch.metadata;
    const name = batchChildName(batch.metadata.name, index);
    const existing = compressionJobs.get(objectKey({ namespace, name }));
    if (existing === undefined) continue;
    const found = isBatchChild(existing, batch) ? children : nameConflicts;
    found.set(index, existing);
  }
  for (const index of listMissing(batch, children)) {
    if (!(await childExists(client, batch, index))) deleted.add(index);
  }
  return { batch, children, deleted, nameConflicts, now };
}

/** Jobs that were created and that the cache does not have. */
function listMissing(batch: BatchObject, children: ChildMap): number[] {
  return Array.from({ length: batchJobCount(batch) }, (_, index) => index).filter(
    (index) => !children.has(index) && recordedJobState(batch, index) === jobStateCodes.created,
  );
}

function isBatchChild(
  { metadata }: Stored<CompressionJobObject>,
  batch: Stored<BatchObject>,
): boolean {
  const owners = metadata.ownerReferences ?? [];
  return owners.some(({ controller, uid }) => controller && uid === batch.metadata.uid);
}

async function childExists(
  client: KubernetesClient,
  batch: Stored<BatchObject>,
  index: number,
): Promise<boolean> {
  const name = batchChildName(batch.metadata.name, index);
  const child = await ignoreNotFound(client.get(compressionJobType, name));
  return child !== undefined && isBatchChild(child, batch);
}
