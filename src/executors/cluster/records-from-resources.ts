import { batchName } from "../../contract/jobs/batch.ts";
import type { BatchSpec } from "../../contract/custom-resources/batch-resource.ts";
import { effectiveRecipe, findTarget, resolveRecipe } from "../../contract/jobs/resolve-recipe.ts";
import { ServiceError } from "../../contract/errors.ts";
import { batchChildName, decodeIdTime } from "../../contract/id.ts";
import type { RequestedRecipe } from "../../contract/jobs/recipe.ts";
import type { Target } from "../../contract/jobs/target.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { requireNamespace } from "../../kubernetes/require-namespace.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import { hasBegun } from "./has-begun.ts";
import type { NewBatch } from "../../records/jobs/insert-batch.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import { jobFromRequest } from "../../records/jobs/job-from-request.ts";

/** The record of a job that was created as a resource. */
export function jobFromResource(
  object: Stored<CompressionJobObject>,
  targets: readonly Target[],
): NewJob {
  const { metadata, spec } = object;
  const { name, uid } = metadata;
  const id = resolveJobId({ metadata });
  return {
    ...jobFromRequest(spec, spec.model, resolveTargetAndRecipe(targets, spec.target, spec.recipe)),
    id,
    createdAt: recordedCreationTime(id, metadata),
    resource: { namespace: requireNamespace(object), name, uid },
    hasBegun: hasBegun(object),
  };
}

/**
 * The record of a batch that was created as a resource, with all of its jobs. The operator creates
 * their resources later.
 */
export function batchFromResource(
  object: Stored<BatchObject>,
  targets: readonly Target[],
): NewBatch {
  const { metadata, spec } = object;
  const { name, uid } = metadata;
  const namespace = requireNamespace(object);
  const id = resolveBatchId({ metadata });
  const createdAt = recordedCreationTime(id, metadata);
  const { models, kind, failFast, suite = null, revision = null, labels = {} } = spec;
  const jobs = batchJobs(spec, targets).map((job, index) => ({
    ...job,
    createdAt,
    resource: { namespace, name: batchChildName(name, index), uid: null },
  }));
  const resource = { namespace, name, uid, isSource: true };
  const batch = { suite, revision, kind, failFast, labels };
  return { id, createdAt, resource, name: batchName({ ...spec, models }), ...batch, jobs };
}

/** One job for each pair of a model and a target, in the order of models × targets. */
function batchJobs(spec: BatchSpec, targets: readonly Target[]) {
  const resolutions = spec.targets.map((target) =>
    resolveTargetAndRecipe(targets, target, spec.recipe),
  );
  return spec.models.flatMap((model) =>
    resolutions.map((resolution) =>
      jobFromRequest({ ...spec, name: undefined }, model, resolution),
    ),
  );
}

/** The precise time of the id, limited to the second of creation, since users can choose the id. */
function recordedCreationTime(
  id: string,
  { creationTimestamp }: Stored<KubernetesObject>["metadata"],
): string {
  const latest = Date.parse(creationTimestamp) + 999;
  return new Date(Math.min(decodeIdTime(id).getTime(), latest)).toISOString();
}

/**
 * An unknown target or preset is recorded by its name: the operator fails the job with the reason.
 */
function resolveTargetAndRecipe(
  targets: readonly Target[],
  name: string,
  recipe: RequestedRecipe = {},
) {
  const { preset: _preset, ...fields } = recipe;
  try {
    const target = findTarget(targets, name);
    return { target, recipe: effectiveRecipe(target, recipe) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { target: { ...unknownTarget, name }, recipe: resolveRecipe(fields) };
  }
}

const unknownTarget: Omit<Target, "name"> = {
  description: "",
  executionProvider: "cpu",
  operators: "standard",
  recipe: {},
  presets: {},
};
