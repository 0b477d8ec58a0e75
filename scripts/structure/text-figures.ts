import { countFigure, type Figure, shareFigure } from "./figure.ts";
import type { FunctionPlace, Place, Source } from "./source.ts";

type SizedPlace = Omit<FunctionPlace, "isDeclaration">;

const longestLine = 100;
const longestFunction = 60;

/** Says how the measured files read: sizes, names and habits. */
export function textFigures(measured: readonly Source[]): readonly Figure[] {
  const functions = measured.flatMap((source) => source.functions);
  const lines = { per: 1000, of: measured.flatMap((source) => source.lines).length };
  const longLines = measured.flatMap(findLongLines);
  const spreads = measured.flatMap(({ conditionalSpreads }) => conditionalSpreads);
  const anyTypes = measured.flatMap((source) => source.anyTypes);
  const ofFunctions = { per: 100, of: functions.length };
  const longFunctions = functions.filter((each) => each.lines > longestFunction);
  return [
    ...nameFigures(functions.filter(({ isDeclaration }) => isDeclaration)),
    shareFigure("long-lines-per-1000", longLines, lines),
    shareFigure("conditional-spreads-per-1000", spreads, lines),
    shareFigure("any-per-1000", anyTypes, lines),
    ...sizeFigures("file-lines", measured.map(filePlace)),
    ...sizeFigures("function-lines", functions),
    shareFigure("functions-over-60-lines-percent", longFunctions, ofFunctions),
  ];
}

/** Declarations at every depth; methods and closures often take names that others set. */
function nameFigures(declarations: readonly Place[]): readonly Figure[] {
  const named = declarations.filter(({ name }) => /[a-z]Of$/.test(name));
  const groups = [...Map.groupBy(declarations, ({ name }) => name).values()];
  const repeated = groups.filter((group) => new Set(group.map(({ file }) => file)).size > 1);
  return [
    shareFigure("of-functions-percent", named, { per: 100, of: declarations.length }),
    { ...countFigure("repeated-function-names", repeated.flat()), value: repeated.length },
  ];
}

function findLongLines({ file, lines }: Source): readonly Place[] {
  return lines.flatMap((text, index) => {
    if (text.length <= longestLine) return [];
    return [{ file, line: index + 1, name: `${text.length} characters` }];
  });
}

function filePlace({ file, lines }: Source): SizedPlace {
  return { file, line: 1, name: "", lines: lines.length };
}

/** The median and what 95 of 100 do not exceed; their places are larger. */
function sizeFigures(name: string, sized: readonly SizedPlace[]): readonly Figure[] {
  const sorted = sized.toSorted((a, b) => a.lines - b.lines);
  return [["median", 0.5] as const, ["p95", 0.95] as const].map(([title, share]) => {
    const value = sorted[Math.floor(sorted.length * share)]?.lines ?? 0;
    const larger = sorted.filter(({ lines }) => lines > value).toReversed();
    const places = larger.map((each) => ({ ...each, name: `${each.lines} lines ${each.name}` }));
    return { name: `${name}-${title}`, value, places };
  });
}
