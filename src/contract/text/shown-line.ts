import { z } from "zod";
import { truncate } from "./truncate.ts";
import { joinLines } from "./hidden-characters.ts";

/**
 * A text of a worker: one visible line of at most `max` UTF-16 units. What is longer is cut and not
 * refused, since names in a model can be as long as its author likes.
 */
export function shownLine(max: number): z.ZodString {
  return z
    .string()
    .overwrite((text) => joinLines(truncate(text.toWellFormed(), max)))
    .max(max);
}
