import { replaceHiddenCharacters } from "./hidden-characters.ts";
import { truncate } from "./truncate.ts";

/** Longest name in a message, UTF-16 units: 200 and an ellipsis. */
const maxNameLength = 201;

/** A name from a model file, safe to put in a message. */
export function quoteName(name: string): string {
  return replaceHiddenCharacters(JSON.stringify(truncate(name, maxNameLength)));
}
