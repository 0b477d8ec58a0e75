import { z } from "zod";

/**
 * A text of `min` to `max` Unicode characters, which JSON Schema and Kubernetes count.
 * `z.string().max()` counts UTF-16 units, and an emoji has two. PostgreSQL stores no U+0000.
 */
export function boundedText({ min, max }: { min: number; max: number }): z.ZodString {
  const isWithin = (value: string) => {
    let characters = 0;
    for (const _ of value) characters++;
    return characters >= min && characters <= max;
  };
  return z
    .string()
    .refine(isWithin, { error: `must have ${min} to ${max} characters` })
    .refine((value) => !value.includes("\0"), { error: "must not have the character U+0000" })
    .meta({ minLength: min, maxLength: max });
}
