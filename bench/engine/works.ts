import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";

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
} as const satisfies Record<string, PartialRecipe>;

export type Work = keyof typeof works;

export const everyWork = Object.keys(works) as readonly Work[];
