import type { z } from "zod";
import { ProblemError } from "../../client/problem-error.ts";

/** What is wrong with each field of a form, by the field's name. */
export type FieldMessages = Readonly<Record<string, string | undefined>>;

/** Messages of a refused request; empty if no field was refused. */
export function refusedFields(error: unknown): FieldMessages {
  if (!(error instanceof ProblemError)) return {};
  const errors = error.problem.errors ?? [];
  return Object.fromEntries(
    errors.map(({ pointer, message }) => [pointer.split("/")[1] ?? "", message]),
  );
}

/** Messages of a form that its schema refuses. */
export function invalidFields({ issues }: z.ZodError): FieldMessages {
  return Object.fromEntries(issues.map((issue) => [String(issue.path[0]), describeIssue(issue)]));
}

/** A sentence for people: the messages of zod name types. */
function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_type") return "Fill this in";
  if (issue.code === "too_small") {
    if (issue.origin === "string") return "Fill this in";
    return issue.origin === "array" ? "Choose at least one" : `At least ${issue.minimum}`;
  }
  if (issue.code !== "too_big") return issue.message;
  return `At most ${issue.maximum}${issue.origin === "string" ? " characters" : ""}`;
}
