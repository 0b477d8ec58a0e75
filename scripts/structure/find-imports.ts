import { dirname, extname, join } from "node:path/posix";
import type { Argument, Expression, ParseResult } from "oxc-parser";
import { Visitor } from "oxc-parser";
import type { FindPlace, Import } from "./source.ts";

/** Finds every way in which a file names another: also re-exports, `import()` and `new URL()`. */
export function findImports(parsed: ParseResult, place: FindPlace): readonly Import[] {
  const { staticImports, staticExports } = parsed.module;
  const imports: Import[] = [];
  const add = (start: number, specifier: string, names: readonly string[]) => {
    if (!specifier.startsWith(".")) return;
    const from = place(start, "");
    const target = withExtension(join(dirname(from.file), specifier));
    imports.push({ ...from, name: `imports ${target}`, target, names });
  };
  for (const { start, moduleRequest, entries } of staticImports) {
    const names = entries.map(({ importName }) => importName.name ?? "*");
    add(start, moduleRequest.value, names);
  }
  const reexports = staticExports.flatMap(({ entries }) => entries);
  for (const { start, moduleRequest, importName } of reexports) {
    if (moduleRequest !== null) add(start, moduleRequest.value, [importName.name ?? "*"]);
  }
  new Visitor({
    ImportExpression({ start, source }) {
      const specifier = literalText(source);
      if (specifier !== undefined) add(start, specifier, ["*"]);
    },
    TSImportType: ({ start, source }) => add(start, source.value, ["*"]),
    NewExpression({ start, callee, arguments: [path, base] }) {
      const isUrl = callee.type === "Identifier" && callee.name === "URL";
      const specifier = literalText(path);
      if (isUrl && isModuleUrl(base) && specifier !== undefined) add(start, specifier, []);
    },
  }).visit(parsed.program);
  return imports;
}

/** AssemblyScript names files without their extension. */
function withExtension(path: string): string {
  return extname(path) === "" ? `${path}.ts` : path;
}

function literalText(node: Expression | Argument | undefined): string | undefined {
  return node?.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}

function isModuleUrl(node: Argument | undefined): boolean {
  if (node?.type !== "MemberExpression" || node.object.type !== "MetaProperty") return false;
  return node.property.type === "Identifier" && node.property.name === "url";
}
