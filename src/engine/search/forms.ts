import type { Override, Recipe } from "../../contract/jobs/recipe.ts";

/** What a search may make of a weight, as an override says it. */
export interface Form extends Pick<Recipe, "granularity" | "blockSize" | "offsets"> {
  readonly scheme: Exclude<Override["scheme"], "none">;
}

/**
 * The forms that weights are tried in, the most accurate first. All of them store weights only:
 * forms that round activations too have the same bytes and lose more.
 */
export const searchedForms: readonly Form[] = [
  { scheme: "int8-weight", granularity: "block", blockSize: 32 },
  { scheme: "int8-weight", granularity: "channel", blockSize: 32 },
  { scheme: "int4-weight", granularity: "block", blockSize: 16 },
  { scheme: "int4-weight", granularity: "block", blockSize: 32 },
  { scheme: "int4-weight", granularity: "block", blockSize: 128 },
];

/**
 * The forms of a language model's products. Weights are what its memory and its time are spent on,
 * and rounding to 8 bits costs so little that none stays as it is.
 */
export const languageForms: readonly Form[] = [
  { scheme: "int8-weight", granularity: "block", blockSize: 32 },
  { scheme: "int8-weight", granularity: "block", blockSize: 64 },
  { scheme: "int8-weight", granularity: "block", blockSize: 128 },
  { scheme: "int4-weight", granularity: "block", blockSize: 32 },
  // Where there are no offsets, it is the same as the one before, whose name it gets then.
  { scheme: "int4-weight", granularity: "block", blockSize: 32, offsets: "all" },
  { scheme: "int4-weight", granularity: "block", blockSize: 64 },
  { scheme: "int4-weight", granularity: "block", blockSize: 128 },
];

export function describeForm({ scheme, granularity, blockSize, offsets }: Form): string {
  if (granularity !== "block") return `${scheme} per ${granularity}`;
  return `${scheme} in blocks of ${blockSize}${offsets === "all" ? " with offsets" : ""}`;
}

/** Weights that a search decides on together, and their name in overrides. */
export interface FormChoice {
  /** Undefined for all weights that no other one names. */
  readonly match: string | undefined;
  /** Undefined for weights that stay as they are. */
  readonly form: Form | undefined;
}

/**
 * The recipe in which weights have the forms that were chosen for them: one that anyone can read
 * and run again. Weights become floating point again as the runtime loads the model, unless they
 * are to at run time: which operators take them does not depend on the times of a machine. Those of
 * a language model are taken as the recipe says.
 */
export function composeRecipe(
  recipe: Recipe,
  choices: readonly FormChoice[],
  isLanguage: boolean,
): Recipe {
  const { auto: _, overrides: __, offsets: ___, ...fields } = recipe;
  const base = chooseBase(choices);
  const overrides = choices
    .toSorted((a, b) => Number(a.match === undefined) - Number(b.match === undefined))
    .filter(({ form }) => form !== base)
    .map(({ match = "*", form }): Override => {
      return form === undefined ? { match, scheme: "none" } : { match, ...form };
    });
  return {
    ...fields,
    ...base,
    ...(isLanguage
      ? // Also where the target that the recipe is run for again has others.
        { offsets: base.offsets ?? "none" }
      : {
          operators: "standard",
          dequantize: recipe.dequantize === "run" ? "run" : "load-only",
        }),
    fallback: "none",
    // Also where there are none: weights of a recipe with overrides are rounded each by itself.
    overrides,
  };
}

/** A recipe that has weights in blocks wherever they can be, as a calibration looks for them. */
export function blockRecipe(recipe: Recipe): Recipe {
  const form = searchedForms.find(({ granularity }) => granularity === "block");
  return composeRecipe(recipe, [{ match: undefined, form }], false);
}

/** The form of the weights without names, else the most frequent one. */
function chooseBase(choices: readonly FormChoice[]): Form {
  const rest = choices.find(({ match }) => match === undefined)?.form;
  if (rest !== undefined) return rest;
  const count = (form: Form) => choices.filter((each) => each.form === form).length;
  const forms = [...languageForms, ...searchedForms];
  const [most] = forms.toSorted((a, b) => count(b) - count(a));
  if (most === undefined) throw new TypeError("A search has no forms");
  return most;
}
