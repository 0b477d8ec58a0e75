import { z } from "zod";

/** A rule across the fields of an object, in both languages that it is checked in. */
export interface Rule<T> {
  /** The field that is named when the rule is broken. */
  readonly field: keyof T & string;
  /** What is allowed. */
  readonly message: string;
  readonly isMet: (object: T) => boolean;
  /** The same as `holds` in Kubernetes' Common Expression Language; `self` is the object. */
  readonly cel: string;
}

/** The rules of schemas that have some, for those who write a schema in another form. */
export const schemaRules = z.registry<{
  rules: readonly { field: string; message: string; cel: string }[];
}>();

/** A schema of an object that refuses what breaks a rule. */
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
