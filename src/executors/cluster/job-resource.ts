import type { CompressionJobSpec } from "../../contract/custom-resources/compression-job.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../contract/custom-resources/resource-labels.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";

/**
 * The resource of a job that was started over REST. It has the effective recipe, which does not
 * change with the target.
 */
export function jobResource(job: Job, resourceTtlSeconds: number) {
  const { source, sha256, name } = job.model;
  const spec: CompressionJobSpec = {
    kind: job.kind,
    name: job.name,
    model: { source, name, sha256 },
    target: job.target,
    recipe: job.recipe,
    gates: job.gateLimits,
    dryRun: job.dryRun,
    deadlineSeconds: job.deadlineSeconds,
    labels: job.labels,
    cancel: false,
    suspend: false,
    ttlSecondsAfterFinished: resourceTtlSeconds,
  };
  const labels = { [resourceLabels.jobId]: job.id };
  return {
    metadata: { name: job.id, labels, finalizers: [recordFinalizer] },
    spec,
  } satisfies CompressionJobObject;
}
