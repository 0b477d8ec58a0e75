import { type FieldError, ServiceError } from "../contract/errors.ts";
import type { JobRequest } from "../contract/job.ts";
import type { ModelReference } from "../contract/model.ts";
import { type RequestedRecipe, resolveRecipe } from "../contract/recipe.ts";
import type { JobKind } from "../contract/status.ts";
import type { Target } from "../contract/target.ts";
import type { NewJob } from "../records/new-job.ts";
import { checkSource } from "./check-source.ts";
import type { ServerContext } from "./server-context.ts";

/** Part of a request that has to be held against what the service has, and where the request names it. */
interface Named<T> {
  readonly value: T;
  readonly pointer: string;
}

interface JobsRequest extends Pick<JobRequest, "recipe" | "gates" | "labels" | "dryRun"> {
  readonly kind: JobKind;
  readonly name?: string | undefined;
  readonly models: readonly Named<ModelReference>[];
  readonly targets: readonly Named<string>[];
}

/** The jobs of models × targets, with everything resolved. Everything that the service cannot do is named at once. */
export async function newJobs(context: ServerContext, request: JobsRequest): Promise<NewJob[]> {
  const { kind, recipe = {}, gates = {}, labels = {}, dryRun } = request;
  const refusals: Refusal[] = [];
  const targets = request.targets.flatMap(({ value, pointer }) => {
    const target = context.targets.find(({ name }) => name === value);
    if (!target) refusals.push(refusal(pointer, unknownTarget(value, context.targets)));
    else if (lacksPreset(target, recipe)) refusals.push(refusal("/recipe/preset", unknownPreset(target, recipe)));
    return target ?? [];
  });
  const { data } = recipe.evaluation ?? {};
  const sources = [
    ...request.models.map(({ value, pointer }) => ({ value: value.source, pointer: `${pointer}/source` })),
    ...(data === undefined ? [] : [{ value: data, pointer: "/recipe/evaluation/data" }]),
  ];
  const checks = await Promise.allSettled(sources.map(async ({ value }) => checkSource(context, value)));
  checks.forEach((check, i) => {
    if (check.status === "rejected") refusals.push(refusal(sources[i]?.pointer ?? "", check.reason));
  });
  throwRefusals(refusals);
  return request.models.flatMap(({ value }) => {
    const model = { ...value, name: value.name ?? modelName(value.source) };
    return targets.map((target) => ({
      kind,
      name: request.name ?? `${model.name} for ${target.name}`,
      model,
      target,
      recipe: effectiveRecipe(target, recipe),
      gateLimits: gates,
      dryRun,
      labels,
    }));
  });
}

interface Refusal {
  readonly field: FieldError;
  readonly error: ServiceError;
}

function refusal(pointer: string, error: unknown): Refusal {
  if (!(error instanceof ServiceError)) throw error;
  return { field: { pointer, message: error.message }, error };
}

function throwRefusals(refusals: readonly Refusal[]): void {
  const [first] = refusals;
  if (!first) return;
  const { code, message } = first.error;
  throw new ServiceError(code, message, { cause: first.error, fields: refusals.map(({ field }) => field) });
}

function unknownTarget(name: string, targets: readonly Target[]): ServiceError {
  const known = targets.map((target) => target.name).join(", ");
  return new ServiceError("unknown_target", `Target "${name}" is not one of ${known}`);
}

function lacksPreset(target: Target, { preset }: RequestedRecipe): boolean {
  return preset !== undefined && !Object.hasOwn(target.presets, preset);
}

function unknownPreset({ name, presets }: Target, { preset }: RequestedRecipe): ServiceError {
  const known = Object.keys(presets).join(", ");
  const message = `Target "${name}" has no preset "${preset}", ${known === "" ? "and no others" : `only ${known}`}`;
  return new ServiceError("validation_failed", message);
}

function effectiveRecipe(target: Target, { preset, ...requested }: RequestedRecipe) {
  const presetLayers = Object.entries(target.presets).flatMap(([name, layer]) => (name === preset ? [layer] : []));
  return resolveRecipe(target.recipe, ...presetLayers, requested);
}

/** The file's name, or the start of the upload's hash. */
export function modelName(source: string): string {
  const name = source.startsWith("upload:sha256:")
    ? source.slice("upload:sha256:".length, "upload:sha256:".length + 12)
    : new URL(source).pathname.split("/").findLast((part) => part !== "");
  const safe = (name ?? "").replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return safe.slice(0, 100) || "model";
}
