import { z } from "zod";

/**
 * A text of so many characters, counted as JSON Schema and Kubernetes count them. The length that JavaScript gives, and
 * that `z.string().max()` holds, counts characters such as emoji twice.
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
    .meta({ minLength: min, maxLength: max });
}
