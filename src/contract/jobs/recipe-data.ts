import type { PartialRecipe, Recipe } from "./recipe.ts";
import { redactSource } from "../text/redact-source.ts";

/** Where the data of a recipe is, with the path of the field below `recipe`. */
export function listDataFields({
  calibration,
  evaluation,
}: Pick<PartialRecipe, "calibration" | "evaluation">): { field: string; source: string }[] {
  return Object.entries({ calibration, evaluation }).flatMap(([name, section]) =>
    section?.data === undefined ? [] : [{ field: `${name}/data`, source: section.data }],
  );
}

/** Sources of the data that a recipe's jobs read. */
export function listDataSources(recipe: Pick<Recipe, "calibration" | "evaluation">): string[] {
  return listDataFields(recipe).map(({ source }) => source);
}

/** The recipe with other sources of its data. */
export function replaceDataSources(recipe: Recipe, replace: (source: string) => string): Recipe {
  const { calibration, evaluation } = recipe;
  const withData = <T extends { readonly data?: string | undefined }>(section: T): T =>
    section.data === undefined ? section : { ...section, data: replace(section.data) };
  return {
    ...recipe,
    ...(calibration && { calibration: withData(calibration) }),
    evaluation: withData(evaluation),
  };
}

/** The recipe as it may be shown: its readers need not be able to fetch the data. */
export function redactRecipe(recipe: Recipe): Recipe {
  return replaceDataSources(recipe, redactSource);
}
