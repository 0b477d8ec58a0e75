import { z } from "zod";

/**
 * A text of `min` to `max` Unicode characters, which JSON Schema and Kubernetes count.
 * `z.string().max()` counts UTF-16 units, of which an emoji has two. PostgreSQL stores no U+0000.
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

const ellipsis = "…";

/**
 * The text, or as much of its start as fits with an ellipsis into `maxLength` UTF-16 units. Never
 * ends with half of a surrogate pair.
 */
export function truncate(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const end = maxLength - ellipsis.length;
  const last = text.charCodeAt(end - 1);
  const isSplit = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, isSplit ? end - 1 : end)}${ellipsis}`;
}
