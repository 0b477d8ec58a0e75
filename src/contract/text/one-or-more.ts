import { z } from "zod";

/** A text or a list of them. */
export function oneOrMore<Schema extends z.ZodType<string>>(value: Schema) {
  return z.union([value.transform((one) => [one]), z.array(value).min(1).max(100)]);
}
