import { z } from "zod";

/** A rule across the fields of an object, in TypeScript and in CEL. */
export interface Rule<T> {
  /** The field that the error names. */
  readonly field: keyof T & string;
  /** What is allowed. */
  readonly message: string;
  readonly isMet: (object: T) => boolean;
  /** `isMet` in Kubernetes' Common Expression Language; `self` is the object. */
  readonly cel: string;
}

/** The rules of schemas that have some, to write them in another language of schemas. */
export const schemaRules = z.registry<{
  rules: readonly { field: string; message: string; cel: string }[];
}>();

/** The same for schemas of texts, whose rules stand in for the pattern where the API server would answer with that. */
export const valueRules = z.registry<{ rules: readonly { message: string; cel: string }[] }>();

/** The schema of an object with the rules as refinements. */
export function withRules<Schema extends z.ZodType>(
  schema: Schema,
  rules: readonly Rule<z.output<Schema>>[],
): Schema {
  const ruled = schema.superRefine((object, context) => {
    for (const { field, message, isMet } of rules) {
      if (!isMet(object)) context.addIssue({ code: "custom", path: [field], message });
    }
  });
  schemaRules.add(ruled, { rules });
  return ruled;
}
