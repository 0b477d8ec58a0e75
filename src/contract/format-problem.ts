import type { InputProblem } from "./parse-input.ts";

/** A problem in words, such as `models[0].source is missing and must be a string`. */
export function formatProblem({ path, message }: InputProblem): string {
  const field = path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
  return field === "" ? message : `${field} ${message}`;
}

/** What is wrong with the spec of a resource, on one line. */
export function formatSpecProblems(problems: readonly InputProblem[]): string {
  return problems
    .map(({ path, message }) => formatProblem({ path: ["spec", ...path], message }))
    .join("; ");
}

/** A line for each problem. */
export function formatProblems(problems: readonly InputProblem[]): string {
  return problems.map(formatProblem).join("\n");
}
