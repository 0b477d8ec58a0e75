import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { findTarget } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";

export const target = findTarget(builtinTargets, "cpu-int8");

/** The same work for both: our recipe, and by its name the function of peer.py. */
export const works = {
  int4: {
    scheme: "int4-weight",
    granularity: "block",
    blockSize: 32,
    symmetric: false,
    operators: "contrib",
  },
  int8: {
    scheme: "int8-weight",
    granularity: "block",
    blockSize: 32,
    symmetric: false,
    operators: "contrib",
  },
  dynamic: { scheme: "int8-dynamic", granularity: "channel", reduceRange: false },
  "dynamic-reduced": { scheme: "int8-dynamic", granularity: "channel", reduceRange: true },
  static: {
    scheme: "int8-static",
    granularity: "channel",
    operators: "contrib",
    fallback: "int8-weight",
  },
  /** All operators in integers, whatever it costs: as small as a peer's. */
  "static-integers": {
    scheme: "int8-static",
    granularity: "channel",
    operators: "contrib",
    fallback: "int8-weight",
    dequantize: "run",
  },
  /** Without a peer. */
  target: target.recipe,
} as const satisfies Record<string, PartialRecipe>;

export type Work = keyof typeof works;
