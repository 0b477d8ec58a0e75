import { dirname } from "node:path/posix";
import { type Arrow, drawArrows, findCircles, findUpward } from "./arrows.ts";
import { countFigure, type Figure } from "./figure.ts";
import type { Place, Source } from "./source.ts";

type Sources = readonly Source[];

/** Processes start at these, and the kernels' compiler: nothing imports what they export. */
const entries =
  /^((src\/[^/]+|operator)\/main|src\/engine\/.*(-process|\/assembly\/kernels)|src\/dashboard\/(vite\.config|assets\.d))\.tsx?$/;

/** Says how the measured files hang together. The other files only import what those export. */
export function importFigures(measured: Sources, all: Sources): readonly Figure[] {
  const parts = findUpward(drawArrows(measured, partOf));
  const circles = findCircles(drawArrows(measured, (file) => file));
  return [
    arrowFigure("upward-imports", parts),
    arrowFigure("upward-subfolder-imports", findUpwardInParts(measured)),
    countFigure("import-circles", circles.map(circlePlace)),
    countFigure("exports-unused-outside-tests", findUnusedExports(measured, all)),
  ];
}

/** `src/engine` of `src/engine/onnx/field.ts`: a folder of the first two levels. */
function partOf(file: string): string {
  return dirname(file).split("/").slice(0, 2).join("/");
}

function findUpwardInParts(measured: Sources): readonly Arrow[] {
  const parts = Map.groupBy(measured, ({ file }) => partOf(file));
  return [...parts.values()].flatMap((sources) => findUpward(drawArrows(sources, dirname)));
}

/** Counts arrows; its places are the imports that make them. */
function arrowFigure(name: string, arrows: readonly Arrow[]): Figure {
  const places = arrows.flatMap(({ from, to, imports }) =>
    imports.map((place) => ({ ...place, name: `${place.name} (${from} → ${to})` })),
  );
  return { name, value: arrows.length, places };
}

function circlePlace(circle: readonly string[]): Place {
  const [file = "", ...others] = circle;
  return { file, line: 1, name: `in a circle with ${others.join(", ")}` };
}

function findUnusedExports(measured: Sources, all: Sources): readonly Place[] {
  const imports = all.flatMap((source) => source.imports);
  const taken = imports.flatMap(({ target, names }) => names.map((name) => `${target} ${name}`));
  const used = new Set(taken);
  const isUsed = ({ file, name }: Place) => used.has(`${file} ${name}`) || used.has(`${file} *`);
  const exported = measured.flatMap((source) => source.exports);
  return exported.filter((place) => !isUsed(place) && !entries.test(place.file));
}
