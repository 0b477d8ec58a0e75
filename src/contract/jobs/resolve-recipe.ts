import {
  type Calibration,
  contribDialects,
  granularitiesByScheme,
  isForOtherRuntime,
  type PartialRecipe,
  type Recipe,
  recipe,
  type RequestedRecipe,
} from "./recipe.ts";
import { defaultAuto, explainMissingGoal } from "./auto.ts";
import type { GateLimits } from "./gate.ts";
import type { Target } from "./target.ts";
import { ServiceError } from "../errors.ts";

/** The recipe where neither the request nor the target sets a field. */
export const defaultRecipe: Recipe = {
  scheme: "int8-weight",
  granularity: "channel",
  blockSize: 32,
  symmetric: true,
  reduceRange: false,
  operators: "standard",
  dequantize: "load",
  fallback: "none",
  exclude: [],
  minElements: 256,
  parallelism: 1,
  sharding: { maxShardBytes: 1_073_741_824, balance: "bytes" },
  evaluation: { level: "outputs", samples: 8, latencyBudgetSeconds: 20, minCosine: 0.9 },
};

/** Of recipes that have a calibration. */
const defaultCalibration: Calibration = {
  generated: false,
  samples: 32,
  method: "auto",
};

/**
 * The default recipe with the fields of partial recipes over it; later layers override earlier
 * ones. 4-bit weights have a scale for each block by default.
 */
export function resolveRecipe(...layers: PartialRecipe[]): Recipe {
  const all = [defaultRecipe, ...layers];
  const scheme = layers.findLast((layer) => layer.scheme !== undefined)?.scheme;
  return recipe.parse({
    ...Object.assign(
      {},
      defaultRecipe,
      scheme === "int4-weight" && { granularity: "block" },
      ...layers,
    ),
    sharding: Object.assign({}, ...all.map((layer) => layer.sharding)),
    ...(layers.some((layer) => layer.calibration !== undefined) && {
      calibration: Object.assign({}, defaultCalibration, ...layers.map((each) => each.calibration)),
    }),
    ...(layers.some((layer) => layer.auto !== undefined) && {
      auto: Object.assign({}, defaultAuto, ...layers.map((each) => each.auto)),
    }),
    evaluation: Object.assign({}, ...all.map((layer) => layer.evaluation)),
  });
}

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

interface UnsupportedField {
  readonly field: "granularity" | "operators" | "calibration" | "auto";
  readonly message: string;
}

/** What no model of a target can have: the field that asks for it, and why not. */
export function findUnsupportedField(recipe: Recipe, target: Target): UnsupportedField | undefined {
  const { scheme, granularity, operators, calibration, dialect = "cpu" } = recipe;
  const obstacle = findSearchObstacle(recipe);
  if (obstacle !== undefined) {
    return { field: "auto", message: `The recipe's \`auto\` ${obstacle}` };
  }
  if (calibration !== undefined && (calibration.data !== undefined) === calibration.generated) {
    const problem = calibration.generated ? "both data and generated samples" : "no samples";
    const message = `The calibration has ${problem}: give \`data\` or set \`generated\``;
    return { field: "calibration", message };
  }
  if (scheme === "int8-static" && calibration === undefined) {
    const message =
      "Scheme int8-static needs `calibration`: give samples as its `data`, or set `generated`";
    return { field: "calibration", message };
  }
  if (operators === "contrib" && target.operators === "standard") {
    const available = `target "${target.name}" has the standard ones only`;
    const message = `The recipe asks for contrib operators, and ${available}`;
    return { field: "operators", message };
  }
  if (operators === "contrib" && scheme === "int8-static" && !contribDialects.includes(dialect)) {
    const message =
      `The recipe asks for contrib operators, and the runtime of its dialect "${dialect}" has the ` +
      "standard ones only";
    return { field: "operators", message };
  }
  const allowed = granularitiesByScheme[scheme];
  if (allowed.includes(granularity)) return undefined;
  const options = allowed.map((name) => `"${name}"`).join(" or ");
  const message = `Scheme "${scheme}" has granularity "${granularity}", and may have ${options}`;
  return { field: "granularity", message };
}

/** Why a dry run cannot say what a job of the recipe would do; undefined where it can. */
export function explainUnplanned({ auto }: Recipe): string | undefined {
  return auto && "A dry run runs no model, and the recipe's `auto` finds a recipe by running it";
}

interface UnmeasuredGate {
  readonly gate: "maxLatencyRatio" | "maxLatencyRegression";
  readonly message: string;
}

/** A gate that no job of a recipe can pass, since its figure is never measured, and why. */
export function findUnmeasuredGate(
  recipe: Recipe,
  { warnGates = [], ...limits }: GateLimits = {},
): UnmeasuredGate | undefined {
  if (!isForOtherRuntime(recipe)) return undefined;
  const gates = ["maxLatencyRatio", "maxLatencyRegression"] as const;
  const gate = gates.find((each) => limits[each] !== undefined && !warnGates.includes(each));
  const message =
    `The gate ${gate} limits a latency, and no result of the dialect "${recipe.dialect}" is timed: ` +
    "its runtime is not the one here";
  return gate && { gate, message };
}

function findSearchObstacle(recipe: Recipe): string | undefined {
  const { auto, overrides = [], parallelism, evaluation } = recipe;
  if (auto === undefined) return undefined;
  if (overrides.length > 0) return "finds the overrides: give none";
  if (parallelism > 1) return "searches in one pod: parallelism must be 1";
  if (evaluation.level !== "outputs") {
    return `compares outputs, and the evaluation's level is ${evaluation.level}`;
  }
  return explainMissingGoal(auto);
}

/** @throws ServiceError recipe_unsupported */
export function requireSupportedRecipe(recipe: Recipe, target: Target, gates?: GateLimits): void {
  const unsupported = findUnsupportedField(recipe, target) ?? findUnmeasuredGate(recipe, gates);
  if (unsupported) throw new ServiceError("recipe_unsupported", unsupported.message);
}
