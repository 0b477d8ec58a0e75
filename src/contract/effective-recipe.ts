import { ServiceError } from "./errors.ts";
import type { Recipe, RequestedRecipe } from "./recipe.ts";
import { resolveRecipe } from "./resolve-recipe.ts";
import type { Target } from "./target.ts";

/** @throws ServiceError unknown_target */
export function findTarget<Known extends Target>(targets: readonly Known[], name: string): Known {
  const target = targets.find((known) => known.name === name);
  if (target !== undefined) return target;
  const known = targets.map((other) => other.name).join(", ");
  throw new ServiceError("unknown_target", `Target "${name}" is not one of ${known}`);
}

/**
 * The recipe of a job: the request's fields over the preset's over the target's.
 * @throws ServiceError validation_failed for a preset that the target does not have
 */
export function effectiveRecipe(
  { name, presets, recipe }: Target,
  requested: RequestedRecipe = {},
): Recipe {
  const { preset, ...fields } = requested;
  if (preset === undefined) return resolveRecipe(recipe, fields);
  const layer = Object.hasOwn(presets, preset) ? presets[preset] : undefined;
  if (layer !== undefined) return resolveRecipe(recipe, layer, fields);
  const known = Object.keys(presets).join(", ");
  const allowed = known === "" ? "it has none" : `it has ${known}`;
  const message = `Target "${name}" has no preset "${preset}": ${allowed}`;
  throw new ServiceError("validation_failed", message);
}
