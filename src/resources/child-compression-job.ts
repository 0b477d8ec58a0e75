import { apiVersion } from "../contract/custom-resources/api-group.ts";
import type { CompressionJobSpec } from "../contract/custom-resources/compression-job.ts";
import { recordFinalizer, resourceLabels } from "../contract/custom-resources/resource-labels.ts";
import { batchChildName, batchJobId } from "../contract/id.ts";
import type { ModelReference } from "../contract/models/model.ts";
import type { Stored } from "../kubernetes/resources.ts";
import type { BatchObject, CompressionJobObject } from "./custom-resources.ts";
import { labelValue, resolveBatchId } from "./job-identity.ts";

/** Number of jobs of a batch: one for each pair of a model and a target. */
export function batchJobCount({ spec }: BatchObject): number {
  return spec.models.length * spec.targets.length;
}

/** Model and target of the job with that index, in the order of models × targets. */
export function modelTargetPair(
  { spec }: BatchObject,
  index: number,
): { model: ModelReference; target: string } {
  const model = spec.models[Math.floor(index / spec.targets.length)];
  const target = spec.targets[index % spec.targets.length];
  if (model === undefined || target === undefined) {
    throw new RangeError(`The batch has no job ${index}`);
  }
  return { model, target };
}

/**
 * The CompressionJob of a batch with that index. It is deleted with the batch, after its logs and
 * result are recorded.
 */
export function childCompressionJob(
  batch: Stored<BatchObject>,
  index: number,
): CompressionJobObject {
  return {
    metadata: {
      name: batchChildName(batch.metadata.name, index),
      labels: childLabels(batch, index),
      finalizers: [recordFinalizer],
      ownerReferences: [batchReference(batch)],
    },
    spec: childSpec(batch, index),
  };
}

function childLabels(batch: Stored<BatchObject>, index: number): Record<string, string> {
  const { name, labels } = batch.metadata;
  const id = resolveBatchId(batch);
  const own = {
    [resourceLabels.batch]: labelValue(name),
    [resourceLabels.batchId]: id,
    [resourceLabels.jobId]: batchJobId(id, index),
  };
  const inherited = [resourceLabels.queue, resourceLabels.queuePriority].flatMap((label) => {
    const value = labels?.[label];
    return value === undefined ? [] : [[label, value] as const];
  });
  return { ...own, ...Object.fromEntries(inherited) };
}

function batchReference({ metadata: { name, uid } }: Stored<BatchObject>) {
  const owner = { apiVersion, kind: "Batch", name, uid };
  return { ...owner, controller: true, blockOwnerDeletion: true };
}

function childSpec(batch: BatchObject, index: number): CompressionJobSpec {
  const { kind, recipe, gates, dryRun, deadlineSeconds, labels } = batch.spec;
  const controls = { cancel: false, suspend: false };
  const work = { ...modelTargetPair(batch, index), recipe, gates, dryRun };
  return { kind, ...work, deadlineSeconds, labels, ...controls };
}
