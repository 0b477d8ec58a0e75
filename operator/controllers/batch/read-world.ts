import { jobMarks } from "../../../src/contract/custom-resources.ts";
import { batchChildName } from "../../../src/contract/id.ts";
import {
  type BatchObject,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../../src/kubernetes/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import type { Reflector } from "../../../src/kubernetes/reflector.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { BatchWorld } from "./batch-world.ts";
import { jobsOf } from "../../../src/kubernetes/child-of-batch.ts";
import { markAt } from "./mark-jobs.ts";

export interface WorldSources {
  readonly client: KubernetesClient;
  readonly compressionJobs: Reflector<CompressionJobObject>;
  readonly now: Date;
}

/** Reads a batch's world from the cache, and asks the API server about children that are missing there. */
export async function readWorld(batch: Stored<BatchObject>, sources: WorldSources): Promise<BatchWorld> {
  const { client, compressionJobs, now } = sources;
  const children = new Map<number, Stored<CompressionJobObject>>();
  const taken = new Map<number, Stored<CompressionJobObject>>();
  const missing: number[] = [];
  for (let index = 0; index < jobsOf(batch); index++) {
    const found = compressionJobs.get(batchChildName(batch.metadata.name, index));
    if (found !== undefined) (isChild(found, batch) ? children : taken).set(index, found);
    if (!children.has(index) && markAt(batch, index) === jobMarks.made) missing.push(index);
  }
  const gone = new Set<number>();
  for (const index of missing) {
    if (!(await isThere(client, batch, index))) gone.add(index);
  }
  return { batch, children, gone, taken, now };
}

function isChild({ metadata }: Stored<CompressionJobObject>, batch: Stored<BatchObject>): boolean {
  return metadata.ownerReferences?.some(({ controller, uid }) => controller && uid === batch.metadata.uid) ?? false;
}

async function isThere(client: KubernetesClient, batch: Stored<BatchObject>, index: number): Promise<boolean> {
  try {
    return isChild(await client.get(compressionJobType, batchChildName(batch.metadata.name, index)), batch);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
