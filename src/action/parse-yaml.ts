import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";

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
  const parsed = schema.safeParse(document.toJS());
  if (parsed.success) return { value: parsed.data, lineAtPath };
  return { problems: parsed.error.issues.flatMap((issue) => yamlProblems(issue, lineAtPath)) };
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

function yamlProblems(issue: z.core.$ZodIssue, lineAtPath: LineLookup): YamlProblem[] {
  if (issue.code !== "unrecognized_keys") {
    const field = formatFieldPath(issue.path);
    const message = field === "" ? issue.message : `${field}: ${issue.message}`;
    return [{ line: lineAtPath(issue.path), message }];
  }
  return issue.keys.map((key) => {
    const path = [...issue.path, key];
    return { line: lineAtPath(path), message: `${formatFieldPath(path)}: there is no such field` };
  });
}

function formatFieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}
