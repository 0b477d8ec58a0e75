import { batchName } from "../../contract/batch.ts";
import { effectiveRecipe, findTarget } from "../../contract/effective-recipe.ts";
import { ServiceError } from "../../contract/errors.ts";
import { batchChildName, decodeIdTime } from "../../contract/id.ts";
import type { RequestedRecipe } from "../../contract/recipe.ts";
import { resolveRecipe } from "../../contract/resolve-recipe.ts";
import type { Target } from "../../contract/target.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import type { NewBatch } from "../../records/batch-records.ts";
import type { NewJob } from "../../records/insert-jobs.ts";
import { jobFromRequest } from "../../records/job-from-request.ts";

/** Where resources are, and the targets that they can name. */
export interface NamespaceTargets {
  readonly namespace: string;
  readonly targets: readonly Target[];
}

/** The record of a job that was made as a resource. */
export function jobFromResource(
  { metadata, spec }: Stored<CompressionJobObject>,
  { namespace, targets }: NamespaceTargets,
): NewJob {
  const { name, uid } = metadata;
  const id = resolveJobId({ metadata });
  return {
    ...jobFromRequest(spec, spec.model, resolveTargetAndRecipe(targets, spec.target, spec.recipe)),
    id,
    createdAt: creationTimeOfRecord(id, metadata),
    resource: { namespace, name, uid },
  };
}

/** The record of a batch that was made as a resource, with all of its jobs: the operator makes their resources bit by bit. */
export function batchFromResource(
  { metadata, spec }: Stored<BatchObject>,
  { namespace, targets }: NamespaceTargets,
): NewBatch {
  const { name, uid } = metadata;
  const id = resolveBatchId({ metadata });
  const resolutions = spec.targets.map((target) =>
    resolveTargetAndRecipe(targets, target, spec.recipe),
  );
  const pairs = spec.models.flatMap((model) =>
    resolutions.map((resolution) => ({ model, resolution })),
  );
  const { models, kind, failFast, suite = null, revision = null, labels = {} } = spec;
  const madeAt = creationTimeOfRecord(id, metadata);
  return {
    id,
    createdAt: madeAt,
    resource: { namespace, name, uid },
    name: batchName({ ...spec, models }),
    suite,
    revision,
    kind,
    failFast,
    labels,
    jobs: pairs.map(({ model, resolution }, i) => ({
      ...jobFromRequest({ ...spec, name: undefined }, model, resolution),
      createdAt: madeAt,
      resource: { namespace, name: batchChildName(name, i), uid: null },
    })),
  };
}

/** As precise as the id tells it; whoever makes up an id cannot put its time into the future. */
function creationTimeOfRecord(
  id: string,
  { creationTimestamp }: Stored<KubernetesObject>["metadata"],
): string {
  return new Date(
    Math.min(decodeIdTime(id).getTime(), Date.parse(creationTimestamp) + 999),
  ).toISOString();
}

/** What cannot be resolved is recorded as far as it goes: the operator lets such a job fail, with the reason. */
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
