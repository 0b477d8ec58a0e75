import { dirname } from "node:path/posix";
import type { Source } from "./parse-source.ts";

/** A figure, and the same of two code bases that read well, by this script: hono and remix, 2026. */
export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly models: readonly [hono: string, remix: string];
}

/** Sizes and habits, to look at. None is a reason to split or to merge. */
export function measureFigures(sources: readonly Source[]): readonly Figure[] {
  const fileLines = sources.map(({ lines }) => lines);
  const functionLines = sources.flatMap((source) => source.functionLines);
  const lines = sum(fileLines);
  const oneExport = sources.filter(({ exports }) => exports === 1).length;
  const folders = [...Map.groupBy(sources, ({ file }) => dirname(file)).values()];
  const folderSizes = folders.map((files) => files.length);
  const parameters = sum(sources.map((source) => source.parameters));
  const destructured = sum(sources.map((source) => source.destructuredParameters));
  const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;
  return [
    figure("files", `${sources.length}`, "161", "636"),
    figure("lines", `${lines}`, "20,441", "98,878"),
    figure("lines of a file, median / P95", quantiles(fileLines), "60 / 374", "59 / 639"),
    figure("lines of a function, median / P95", quantiles(functionLines), "7 / 61", "7 / 56"),
    figure("files with one export", percent(oneExport, sources.length), "38.5 %", "40.1 %"),
    figure(
      "lines of imports",
      percent(sum(sources.map((source) => source.importLines)), lines),
      "2.4 %",
      "2.2 %",
    ),
    figure(
      "files of a folder, mean / most",
      `${(sources.length / folders.length).toFixed(1)} / ${Math.max(...folderSizes)}`,
      "2.6 / 21",
      "3.8 / 46",
    ),
    figure(
      "interfaces used once, in their own file",
      `${sum(sources.map((source) => source.interfacesUsedOnce))}`,
      "71",
      "332",
    ),
    figure("destructured parameters", percent(destructured, parameters), "1.5 %", "0.3 %"),
  ];
}

function figure(name: string, value: string, hono: string, remix: string): Figure {
  return { name, value, models: [hono, remix] };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function quantiles(sizes: readonly number[]): string {
  const sorted = sizes.toSorted((one, other) => one - other);
  return [0.5, 0.95].map((share) => sorted[Math.floor(sorted.length * share)]).join(" / ");
}
