import { isNode, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";

export interface YamlProblem {
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

export type ParsedYaml<T> = { readonly problems: readonly YamlProblem[] } | { readonly value: T; lineOf: LineOf };

/** The line of what is at a path, or of the nearest thing around it. */
type LineOf = (path: readonly PropertyKey[]) => number;

/** Reads YAML or JSON by a schema. Everything that is wrong with it is told with its line. */
export function parseYaml<Schema extends z.ZodType>(text: string, schema: Schema): ParsedYaml<z.output<Schema>> {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const lineAt = (offset: number) => Math.max(1, lineCounter.linePos(offset).line);
  if (document.errors.length > 0) {
    return { problems: document.errors.map(({ pos, message }) => ({ line: lineAt(pos[0]), message })) };
  }
  const lineOf: LineOf = (path) => {
    for (let length = path.length; length >= 0; length--) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return lineAt(node.range[0]);
    }
    return 1;
  };
  const parsed = schema.safeParse(document.toJS());
  if (parsed.success) return { value: parsed.data, lineOf };
  const problems = parsed.error.issues.map(({ path, message }) => {
    const field = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
    return { line: lineOf(path), message: `${field.replace(/^\./, "")}${field === "" ? "" : ": "}${message}` };
  });
  return { problems };
}
