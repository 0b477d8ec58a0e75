import { z } from "zod";

/** A whole number of at most 15 digits. */
export const number = z
  .string()
  .regex(/^\d{1,15}$/, { error: "must be a whole number of at most 15 digits" })
  .transform(Number);

/** A text that is not empty: a variable that is set to nothing is an error. */
export const text = z.string().min(1);
