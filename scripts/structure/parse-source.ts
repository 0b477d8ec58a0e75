import {
  type ArrowFunctionExpression,
  type Expression,
  type Function,
  type ParseResult,
  parseSync,
  type Program,
  Visitor,
} from "oxc-parser";
import { findImports } from "./find-imports.ts";
import type { FindPlace, FunctionPlace, Place, Source } from "./source.ts";

/** Reads out of a file's syntax tree what the figures count. */
export function parseSource(file: string, text: string): Source {
  const parsed = parseSync(file, text, { preserveParens: false });
  const [error] = parsed.errors;
  if (error !== undefined) throw new Error(`${file} is not TypeScript: ${error.message}`);
  const lines = splitLines(text);
  const place = placesIn(file, lines);
  return {
    file,
    lines,
    imports: findImports(parsed, place),
    exports: findExports(parsed, place),
    ...findNodes(parsed.program, place),
  };
}

function splitLines(text: string): readonly string[] {
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function placesIn(file: string, lines: readonly string[]): FindPlace {
  const starts = [0];
  for (const line of lines) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  return (offset, name) => {
    const line = starts.findLastIndex((start) => start <= offset) + 1;
    return { file, line, name };
  };
}

/** `export *` names nothing of its own. */
function findExports({ module }: ParseResult, place: FindPlace): readonly Place[] {
  const entries = module.staticExports.flatMap((statement) => statement.entries);
  const named = entries.filter((entry) => entry.importName.kind !== "AllButDefault");
  return named.map(({ start, exportName }) => place(start, exportName.name ?? "default"));
}

function findNodes(program: Program, place: FindPlace) {
  const functions: FunctionPlace[] = [];
  const conditionalSpreads: Place[] = [];
  const anyTypes: Place[] = [];
  const addFunction = (node: Function | ArrowFunctionExpression) => {
    const start = place(node.start, node.id?.name ?? "(closure or method)");
    const lines = place(node.end, "").line - start.line + 1;
    functions.push({ ...start, lines, isDeclaration: node.type === "FunctionDeclaration" });
  };
  new Visitor({
    FunctionDeclaration: addFunction,
    FunctionExpression: addFunction,
    ArrowFunctionExpression: addFunction,
    ObjectExpression({ properties }) {
      for (const property of properties) {
        if (property.type !== "SpreadElement" || !isConditional(property.argument)) continue;
        conditionalSpreads.push(place(property.start, "conditional spread"));
      }
    },
    TSAnyKeyword: ({ start }) => anyTypes.push(place(start, "any")),
  }).visit(program);
  return { functions, conditionalSpreads, anyTypes };
}

function isConditional(node: Expression): boolean {
  if (node.type === "ConditionalExpression") return true;
  return node.type === "LogicalExpression" && node.operator === "&&";
}
