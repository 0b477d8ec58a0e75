import type { FieldError } from "../contract/errors.ts";
import { hasHiddenCharacters } from "../contract/text/hidden-characters.ts";
import { escapePointer } from "./field-errors.ts";

const message = "Must not have line breaks, control characters or marks of the text's direction";

/** The texts of a parsed body, keys too, that could forge a line of a log or of a table. */
export function findHiddenText(value: unknown, pointer = ""): FieldError[] {
  if (typeof value === "string") return hasHiddenCharacters(value) ? [{ pointer, message }] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const below = `${pointer}/${escapePointer(key)}`;
    if (hasHiddenCharacters(key)) return [{ pointer: below, message }];
    return findHiddenText(item, below);
  });
}
