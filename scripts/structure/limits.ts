import type { Figure } from "./figure.ts";

/** The highest value that each figure may have, by its name. */
export type Limits = Readonly<Record<string, number>>;

export function limitFor(limits: Limits, { name }: Figure): number {
  const limit = limits[name];
  if (limit === undefined) throw new Error(`${name} has no limit: run with --update`);
  return limit;
}

/** Takes present values where they are better; a limit is never raised. */
export function lowerLimits(limits: Limits, figures: readonly Figure[]): Limits {
  const entries = figures.map(({ name, value }) => [name, Math.min(limits[name] ?? value, value)]);
  return Object.fromEntries(entries);
}

export function describeExceeded(limits: Limits, figures: readonly Figure[]): readonly string[] {
  const exceeded = figures.filter((figure) => figure.value > limitFor(limits, figure));
  return exceeded.map((figure) => {
    const { name, value } = figure;
    const advice = `npm run structure -- --list ${name}`;
    return `${name} is ${value}, at most ${limitFor(limits, figure)} is allowed: see ${advice}`;
  });
}
