import {
  chooseGranularity,
  maxPatternLength,
  type Override,
  type Recipe,
} from "../../contract/jobs/recipe.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { Weight } from "./find-weights.ts";

/** @returns a function that says which pattern of the recipe excludes a weight, if one does */
export function exclusionFinder({ exclude }: Recipe): (weight: Weight) => string | undefined {
  return (weight) => {
    if (exclude.length === 0) return undefined;
    const names = listNames(weight);
    for (const pattern of exclude) {
      const name = names.find((each) => matchesPattern(each, pattern));
      if (name !== undefined)
        return `is excluded: ${quoteName(name)} matches ${quoteName(pattern)}`;
    }
    return undefined;
  };
}

/** What an override of the recipe makes of it for a weight. */
interface MatchedOverride {
  /** Undefined for a weight that is to stay as it is. */
  readonly recipe: Recipe | undefined;
  /** Why, for the report; the weight's name starts the sentence. */
  readonly reason: string;
}

/** @returns a function that gives the first override of the recipe that matches a weight */
export function overrideFinder(recipe: Recipe): (weight: Weight) => MatchedOverride | undefined {
  const overrides = (recipe.overrides ?? []).map((override) => ({
    ...override,
    recipe: overrideRecipe(recipe, override),
  }));
  return (weight) => {
    if (overrides.length === 0) return undefined;
    const names = listNames(weight);
    for (const { match, scheme, recipe: changed } of overrides) {
      const name = names.find((each) => matchesPattern(each, match));
      if (name === undefined) continue;
      const matches = `${quoteName(name)} matches ${quoteName(match)}`;
      const reason =
        scheme === "none"
          ? "is to stay as it is by the recipe's overrides"
          : `is to be ${scheme}: ${matches}`;
      return { recipe: changed, reason };
    }
    return undefined;
  };
}

function overrideRecipe(recipe: Recipe, { scheme, ...fields }: Override): Recipe | undefined {
  if (scheme === "none") return undefined;
  const granularity = chooseGranularity(scheme, fields.granularity ?? recipe.granularity);
  const { blockSize = recipe.blockSize, offsets = "none" } = fields;
  return { ...recipe, scheme, granularity, blockSize, offsets };
}

/** Whether one of the names matches one of the patterns. */
export function matchesAny(names: readonly string[], patterns: readonly string[]): boolean {
  return names.some((name) => patterns.some((pattern) => matchesPattern(name, pattern)));
}

/** A pattern for each weight that matches no other one, by position, where there is one. */
export function findOwnPatterns(weights: readonly Weight[]): Map<number, string> {
  const counts = new Map<string, number>();
  for (const name of weights.flatMap(listNames)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const isOwn = (name: string) =>
    counts.get(name) === 1 &&
    name.length > 0 &&
    name.length <= maxPatternLength &&
    !name.includes("*");
  return new Map(
    weights.flatMap((weight) => {
      const name = listNames(weight).find(isOwn);
      return name === undefined ? [] : [[weight.index, name] as const];
    }),
  );
}

/** The recipe's patterns that match no weight. */
export function listUnmatchedPatterns(
  { exclude, overrides = [] }: Recipe,
  weights: readonly Weight[],
): string[] {
  const patterns = [...exclude, ...overrides.map(({ match }) => match)];
  if (patterns.length === 0) return [];
  const names = [...new Set(weights.flatMap(listNames))];
  return patterns.filter((pattern) => !names.some((name) => matchesPattern(name, pattern)));
}

/** The weight's name, and those of nodes that take it, also past nodes that only move elements. */
function listNames({ name, uses, consumers }: Weight): string[] {
  const nodes = [...uses, ...consumers, ...consumers.flatMap(({ view }) => view.nodes)];
  return [...new Set([name, ...nodes.map(({ node }) => node.name)])];
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
