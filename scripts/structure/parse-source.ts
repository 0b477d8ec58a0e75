import { dirname, extname, join } from "node:path/posix";
import {
  type Argument,
  type ArrowFunctionExpression,
  type Expression,
  type Function,
  type ParseResult,
  parseSync,
  type Program,
  Visitor,
} from "oxc-parser";

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly name: string;
}

export interface Import extends Place {
  readonly target: string;
}

/** What the figures need to know about one file. Paths start at the repository's root. */
export interface Source {
  readonly file: string;
  readonly lines: number;
  readonly imports: readonly Import[];
  /** Lines of import statements. */
  readonly importLines: number;
  readonly exports: number;
  readonly functionLines: readonly number[];
  readonly parameters: number;
  readonly destructuredParameters: number;
  /** Interfaces that are not exported and that the file names once. */
  readonly interfacesUsedOnce: number;
  readonly anyTypes: readonly Place[];
}

type LineAt = (offset: number) => number;

export function parseSource(file: string, text: string): Source {
  const parsed = parseSync(file, text, { preserveParens: false });
  const [error] = parsed.errors;
  if (error !== undefined) throw new Error(`${file} is not TypeScript: ${error.message}`);
  const lines = text.replace(/\n$/, "").split("\n");
  const lineAt = findLines(lines);
  const { staticImports, staticExports } = parsed.module;
  return {
    file,
    lines: lines.length,
    imports: findImports(file, parsed, lineAt),
    importLines: staticImports.reduce((sum, { start, end }) => {
      return sum + lineAt(end) - lineAt(start) + 1;
    }, 0),
    exports: staticExports.flatMap(({ entries }) => entries).length,
    ...countNodes(file, parsed.program, lineAt),
  };
}

function findLines(lines: readonly string[]): LineAt {
  const starts = [0];
  for (const line of lines) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}

/** Finds every way in which a file names another: also re-exports, `import()` and `new URL()`. */
function findImports(file: string, parsed: ParseResult, lineAt: LineAt): readonly Import[] {
  const { staticImports, staticExports } = parsed.module;
  const imports: Import[] = [];
  const add = (start: number, specifier: string) => {
    if (!specifier.startsWith(".")) return;
    const target = withExtension(join(dirname(file), specifier));
    imports.push({ file, line: lineAt(start), name: `imports ${target}`, target });
  };
  for (const { start, moduleRequest } of staticImports) add(start, moduleRequest.value);
  for (const { start, moduleRequest } of staticExports.flatMap(({ entries }) => entries)) {
    if (moduleRequest !== null) add(start, moduleRequest.value);
  }
  new Visitor({
    ImportExpression({ start, source }) {
      const specifier = literalText(source);
      if (specifier !== undefined) add(start, specifier);
    },
    TSImportType: ({ start, source }) => add(start, source.value),
    NewExpression({ start, callee, arguments: [path, base] }) {
      const isUrl = callee.type === "Identifier" && callee.name === "URL";
      const specifier = literalText(path);
      if (isUrl && isModuleUrl(base) && specifier !== undefined) add(start, specifier);
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

function countNodes(file: string, program: Program, lineAt: LineAt) {
  const functionLines: number[] = [];
  const anyTypes: Place[] = [];
  const interfaces = new Set<string>();
  const references = new Map<string, number>();
  let parameters = 0;
  let destructuredParameters = 0;
  const countFunction = ({ start, end, params }: Function | ArrowFunctionExpression) => {
    functionLines.push(lineAt(end) - lineAt(start) + 1);
    for (const param of params) {
      parameters++;
      const pattern = param.type === "AssignmentPattern" ? param.left : param;
      if (pattern.type === "ObjectPattern") destructuredParameters++;
    }
  };
  new Visitor({
    FunctionDeclaration: countFunction,
    FunctionExpression: countFunction,
    ArrowFunctionExpression: countFunction,
    TSInterfaceDeclaration({ id, parent }) {
      if (parent?.type !== "ExportNamedDeclaration") interfaces.add(id.name);
    },
    Identifier({ name }) {
      references.set(name, (references.get(name) ?? 0) + 1);
    },
    TSAnyKeyword: ({ start }) => anyTypes.push({ file, line: lineAt(start), name: "any" }),
  }).visit(program);
  // The declaration is a reference too.
  const once = [...interfaces].filter((name) => (references.get(name) ?? 0) <= 2);
  return {
    functionLines,
    parameters,
    destructuredParameters,
    interfacesUsedOnce: once.length,
    anyTypes,
  };
}
