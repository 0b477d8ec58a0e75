import { dirname } from "node:path/posix";
import { type Arrow, drawArrows, findCircles, findUpward } from "./arrows.ts";
import type { Place, Source } from "./parse-source.ts";

/** What can only be wrong, whatever the code is about, each with its places. */
export function findDefects(sources: readonly Source[]): ReadonlyMap<string, readonly Place[]> {
  const parts = Map.groupBy(sources, ({ file }) => partOf(file));
  const upwardInParts = [...parts.values()].flatMap((part) =>
    findUpward(drawArrows(part, dirname)),
  );
  const circles = findCircles(drawArrows(sources, (file) => file));
  return new Map([
    ["upward imports", describeArrows(findUpward(drawArrows(sources, partOf)))],
    ["upward imports inside a part", describeArrows(upwardInParts)],
    ["import circles", circles.map(describeCircle)],
    ["any", sources.flatMap(({ anyTypes }) => anyTypes)],
  ]);
}

/** `src/engine` of `src/engine/onnx/field.ts`: a folder of the first two levels. */
function partOf(file: string): string {
  return dirname(file).split("/").slice(0, 2).join("/");
}

function describeArrows(arrows: readonly Arrow[]): readonly Place[] {
  return arrows.flatMap(({ from, to, imports }) =>
    imports.map((place) => ({ ...place, name: `${place.name} (${from} → ${to})` })),
  );
}

function describeCircle(circle: readonly string[]): Place {
  const [file = "", ...others] = circle;
  return { file, line: 1, name: `in a circle with ${others.join(", ")}` };
}
