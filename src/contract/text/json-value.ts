import { z } from "zod";

/** The value of a JSON text. */
export const jsonValue = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue("is not JSON");
    return z.NEVER;
  }
});
