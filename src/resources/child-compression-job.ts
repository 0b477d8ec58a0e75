import { apiVersion } from "../contract/api-group.ts";
import { recordFinalizer, resourceLabels } from "../contract/resource-labels.ts";
import { batchChildName, batchJobId } from "../contract/id.ts";
import type { ModelReference } from "../contract/model.ts";
import type { BatchObject, CompressionJobObject } from "./custom-resources.ts";
import { resolveBatchId, labelValue } from "./job-identity.ts";
import type { Stored } from "../kubernetes/resources.ts";

/** Jobs of a batch: one for each pair of a model and a target. */
export function batchJobCount({ spec }: BatchObject): number {
  return spec.models.length * spec.targets.length;
}

/** What the job of that number works on, in the order of models × targets. */
export function modelTargetPair(
  { spec }: BatchObject,
  index: number,
): { model: ModelReference; target: string } {
  const model = spec.models[Math.floor(index / spec.targets.length)];
  const target = spec.targets[index % spec.targets.length];
  if (model === undefined || target === undefined)
    throw new RangeError(`The batch has no job ${index}`);
  return { model, target };
}

/** The CompressionJob of that number. It goes when the batch goes, once its logs and result are recorded. */
export function childCompressionJob(
  batch: Stored<BatchObject>,
  index: number,
): CompressionJobObject {
  const { metadata, spec } = batch;
  const { kind, recipe, gates, dryRun, deadlineSeconds, labels } = spec;
  const queue = metadata.labels?.[resourceLabels.queue];
  const id = resolveBatchId(batch);
  return {
    metadata: {
      name: batchChildName(metadata.name, index),
      labels: {
        [resourceLabels.batch]: labelValue(metadata.name),
        [resourceLabels.batchId]: id,
        [resourceLabels.jobId]: batchJobId(id, index),
        ...(queue !== undefined && { [resourceLabels.queue]: queue }),
      },
      finalizers: [recordFinalizer],
      ownerReferences: [
        {
          apiVersion,
          kind: "Batch",
          name: metadata.name,
          uid: metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      kind,
      ...modelTargetPair(batch, index),
      ...(recipe && { recipe }),
      ...(gates && { gates }),
      dryRun,
      ...(deadlineSeconds !== undefined && { deadlineSeconds }),
      ...(labels && { labels }),
      cancel: false,
      suspend: false,
    },
  };
}
