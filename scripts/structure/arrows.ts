import type { Import, Source } from "./parse-source.ts";

/** What one file or folder imports of another. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly imports: readonly Import[];
}

/** Says to which node a file belongs: to itself, its folder or its part. */
type Placement = (file: string) => string;

export function drawArrows(sources: readonly Source[], nodeOf: Placement): readonly Arrow[] {
  const files = new Set(sources.map(({ file }) => file));
  const imports = sources.flatMap((source) => source.imports);
  const inner = imports.filter(({ target }) => files.has(target));
  const across = inner.filter(({ file, target }) => nodeOf(file) !== nodeOf(target));
  const groups = Map.groupBy(across, ({ file, target }) => `${nodeOf(file)} ${nodeOf(target)}`);
  return [...groups].map(([key, group]) => {
    const [from = "", to = ""] = key.split(" ");
    return { from, to, imports: group };
  });
}

/** Finds the largest sets of nodes that all reach each other. */
export function findCircles(arrows: readonly Arrow[]): readonly (readonly string[])[] {
  const leaving = Map.groupBy(arrows, ({ from }) => from);
  const reached = new Map([...leaving.keys()].map((node) => [node, findReached(node, leaving)]));
  const circles: string[][] = [];
  for (const [node, others] of reached) {
    if (circles.some((circle) => circle.includes(node))) continue;
    const circle = [...others].filter((other) => reached.get(other)?.has(node));
    if (circle.length > 0) circles.push(circle.toSorted());
  }
  return circles;
}

function findReached(node: string, leaving: ReadonlyMap<string, readonly Arrow[]>): Set<string> {
  const reached = new Set<string>();
  const waiting = [node];
  for (const next of waiting) {
    for (const { to } of leaving.get(next) ?? []) {
      if (!reached.has(to)) waiting.push(to);
      reached.add(to);
    }
  }
  return reached;
}

/**
 * Finds the fewest arrows without which no circle is left: those that point up. Among as many, the
 * arrows of fewer imports are likelier to be the wrong ones.
 */
export function findUpward(arrows: readonly Arrow[]): readonly Arrow[] {
  return findCircles(arrows).flatMap((circle) => {
    const inside = arrows.filter(({ from, to }) => circle.includes(from) && circle.includes(to));
    for (let count = 1; ; count++) {
      const found = breakCircles(inside, count);
      if (found !== undefined) return found;
    }
  });
}

/** One arrow of any circle has to go, so trying those of the shortest is an exact search. */
function breakCircles(arrows: readonly Arrow[], count: number): readonly Arrow[] | undefined {
  const circle = findShortestCircle(arrows);
  if (circle === undefined) return [];
  if (count === 0) return undefined;
  for (const arrow of circle.toSorted((a, b) => a.imports.length - b.imports.length)) {
    const others = arrows.filter((other) => other !== arrow);
    const found = breakCircles(others, count - 1);
    if (found !== undefined) return [arrow, ...found];
  }
  return undefined;
}

function findShortestCircle(arrows: readonly Arrow[]): readonly Arrow[] | undefined {
  const nodes = new Set(arrows.map(({ from }) => from));
  const circles = [...nodes].flatMap((node) => findWayBack(node, arrows));
  const [shortest] = circles.toSorted((a, b) => a.length - b.length);
  return shortest;
}

function findWayBack(node: string, arrows: readonly Arrow[]): readonly (readonly Arrow[])[] {
  const seen = new Set<string>();
  const ways = arrows.filter(({ from }) => from === node).map((arrow) => [arrow]);
  for (const way of ways) {
    const end = way.at(-1)?.to ?? node;
    if (end === node) return [way];
    if (seen.has(end)) continue;
    seen.add(end);
    for (const arrow of arrows) if (arrow.from === end) ways.push([...way, arrow]);
  }
  return [];
}
