import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { formatProblem } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";

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
    const problems = document.errors.map(({ pos, message }) => {
      return { line: lineAtOffset(pos[0]), message };
    });
    return { problems };
  }
  const lineAtPath: LineLookup = (path) => lineAtOffset(findOffset(document, path));
  const { data, problems } = parseInput(schema, document.toJS());
  if (problems === undefined) return { value: data, lineAtPath };
  return {
    problems: problems.map((problem) => {
      return { line: lineAtPath(problem.path), message: formatProblem(problem) };
    }),
  };
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
