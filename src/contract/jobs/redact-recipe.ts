import type { Recipe } from "./recipe.ts";
import { replaceDataSources } from "./recipe-data.ts";
import { redactSource } from "../text/redact-source.ts";

/** The recipe as it may be shown: its readers need not be able to fetch the data. */
export function redactRecipe(recipe: Recipe): Recipe {
  return replaceDataSources(recipe, redactSource);
}
