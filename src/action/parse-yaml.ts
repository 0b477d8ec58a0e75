import {
  type Alias,
  type Document,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
} from "yaml";
import type { z } from "zod";
import { formatProblem } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";
import { errorMessage } from "../log/error-message.ts";

interface YamlProblem {
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** The line of the node at a path, or of its nearest ancestor that is there. */
type LineLookup = (path: readonly PropertyKey[]) => number;

type ParsedYaml<T> =
  | { readonly problems: readonly YamlProblem[] }
  | { readonly value: T; readonly lineAtPath: LineLookup };

/** Parses YAML or JSON with a schema. Gives all problems with their lines. */
export function parseYaml<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
): ParsedYaml<z.output<Schema>> {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const lineAtOffset = (offset: number) => Math.max(1, lineCounter.linePos(offset).line);
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ pos, code, message }) => {
      const words = code === "MULTIPLE_DOCS" ? "A second document begins here" : message;
      return { line: lineAtOffset(pos[0]), message: words };
    });
    return { problems };
  }
  const lineAtPath: LineLookup = (path) => lineAtOffset(findOffset(document, path));
  const converted = resolveAliases(document);
  if (converted.message !== undefined) {
    return { problems: [{ line: lineAtOffset(converted.offset), message: converted.message }] };
  }
  const { data, problems } = parseInput(schema, converted.value);
  if (problems === undefined) return { value: data, lineAtPath };
  return {
    problems: problems.map((problem) => {
      return { line: lineAtPath(problem.path), message: formatProblem(problem) };
    }),
  };
}

interface Converted {
  readonly value?: unknown;
  /** Why there is no value. */
  readonly message?: string;
  /** Of the alias that is to blame. */
  readonly offset: number;
}

/** The document's value; an alias without its anchor, or too many of them, is only found here. */
function resolveAliases(document: Document): Converted {
  try {
    return { value: document.toJS(), offset: 0 };
  } catch (error) {
    const aliases: Alias[] = [];
    visit(document, { Alias: (_, alias) => void aliases.push(alias) });
    const alias = aliases.find((each) => !each.resolve(document)) ?? aliases[0];
    return { message: errorMessage(error), offset: alias?.range?.[0] ?? 0 };
  }
}

function findOffset(document: Document, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length--) {
    const parent: unknown = document.getIn(path.slice(0, length - 1), true);
    const key = path[length - 1];
    const pair =
      isMap(parent) && parent.items.find((item) => isScalar(item.key) && item.key.value === key);
    const node: unknown = pair ? pair.key : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}
