import { type PartialRecipe, type Recipe, recipe } from "./recipe.ts";

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
    evaluation: Object.assign({}, ...all.map((layer) => layer.evaluation)),
  });
}
