import { effectiveRecipe, findTarget } from "../contract/effective-recipe.ts";
import { ServiceError } from "../contract/errors.ts";
import { batchChildName, timeOfId } from "../contract/id.ts";
import { type RequestedRecipe, resolveRecipe } from "../contract/recipe.ts";
import type { Target } from "../contract/target.ts";
import type { BatchObject, CompressionJobObject } from "../kubernetes/custom-resources.ts";
import { batchIdOf, jobIdOf } from "../kubernetes/job-identity.ts";
import type { KubernetesObject, Stored } from "../kubernetes/resources.ts";
import type { NewBatch } from "../records/batches.ts";
import type { NewJob } from "../records/new-job.ts";
import { batchName } from "../server/batches.ts";
import { newJob } from "../server/new-jobs.ts";

/** Where resources are, and the targets that they can name. */
export interface Installation {
  readonly namespace: string;
  readonly targets: readonly Target[];
}

/** The record of a job that was made as a resource. */
export function newJobOf(
  { metadata, spec }: Stored<CompressionJobObject>,
  { namespace, targets }: Installation,
): NewJob {
  const { name, uid } = metadata;
  const id = jobIdOf({ metadata });
  return {
    ...newJob(spec, spec.model, resolved(targets, spec.target, spec.recipe)),
    id,
    createdAt: createdAt(id, metadata),
    resource: { namespace, name, uid },
  };
}

/** The record of a batch that was made as a resource, with all of its jobs: the operator makes their resources bit by bit. */
export function newBatchOf({ metadata, spec }: Stored<BatchObject>, { namespace, targets }: Installation): NewBatch {
  const { name, uid } = metadata;
  const id = batchIdOf({ metadata });
  const resolutions = spec.targets.map((target) => resolved(targets, target, spec.recipe));
  const pairs = spec.models.flatMap((model) => resolutions.map((resolution) => ({ model, resolution })));
  const { models, kind, failFast, suite = null, revision = null, labels = {} } = spec;
  const madeAt = createdAt(id, metadata);
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
      ...newJob({ ...spec, name: undefined }, model, resolution),
      createdAt: madeAt,
      resource: { namespace, name: batchChildName(name, i), uid: null },
    })),
  };
}

/** As precise as the id tells it; whoever makes up an id cannot put its time into the future. */
function createdAt(id: string, { creationTimestamp }: Stored<KubernetesObject>["metadata"]): string {
  return new Date(Math.min(timeOfId(id).getTime(), Date.parse(creationTimestamp) + 999)).toISOString();
}

/** What cannot be resolved is recorded as far as it goes: the operator lets such a job fail, with the reason. */
function resolved(targets: readonly Target[], name: string, recipe: RequestedRecipe = {}) {
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
