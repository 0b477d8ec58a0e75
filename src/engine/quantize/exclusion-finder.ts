import type { Recipe } from "../../contract/jobs/recipe.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { Weight } from "./find-weights.ts";

/** @returns a function that says which pattern of the recipe excludes a weight, if one does */
export function exclusionFinder({ exclude }: Recipe): (weight: Weight) => string | undefined {
  return ({ name, uses }) => {
    for (const candidate of [name, ...uses.map(({ node }) => node.name)]) {
      const pattern = exclude.find((each) => matchesPattern(candidate, each));
      if (pattern !== undefined) {
        return `is excluded: ${quoteName(candidate)} matches ${quoteName(pattern)}`;
      }
    }
    return undefined;
  };
}

/**
 * Whether a name matches a pattern in which `*` stands for any characters. Takes time proportional
 * to the product of their lengths at most.
 */
function matchesPattern(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return name.length - last.length >= position && name.endsWith(last);
}
