/** A value for each batch, null if there is none. */
interface Line {
  readonly values: readonly (number | null)[];
}

/**
 * Which lines are the same line, as the places of their targets: those whose points lie on each
 * other wherever both have some.
 */
export function groupEqualLines(lines: readonly Line[]): number[][] {
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const near = nearShare * chartSpan(Math.min(...known), Math.max(...known));
  const groups: number[][] = [];
  for (const [index, { values }] of lines.entries()) {
    const isEqual = (other: number | undefined) =>
      other !== undefined && areEqual(values, lines[other]?.values ?? [], near);
    const group = groups.find(([first]) => isEqual(first));
    if (group === undefined) groups.push([index]);
    else group.push(index);
  }
  return groups;
}

/** Share of a chart's height within which a line hides another one. */
const nearShare = 0.01;

function areEqual(one: Line["values"], other: Line["values"], near: number): boolean {
  const pairs = one.flatMap((value, place) => {
    const otherValue = other[place] ?? null;
    return value === null || otherValue === null ? [] : [Math.abs(value - otherValue)];
  });
  return pairs.length > 0 && pairs.every((difference) => difference <= near);
}

/** Least height of a scale as a share of its value: smaller changes mean nothing. */
const leastSpan = 0.04;

/** Height of a scale around values. */
export function chartSpan(least: number, most: number): number {
  return Math.max(1.1 * (most - least), (leastSpan * Math.abs(least + most)) / 2, Number.EPSILON);
}
