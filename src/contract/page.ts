import { z } from "zod";
import { limits } from "./limits.ts";

/** An integer in a query string. `Number()` would also take "", "0x10" and " 5 ". */
export function integerParameter(bounds: z.ZodInt) {
  return z
    .string()
    .regex(/^-?\d{1,16}$/, { error: "must be an integer" })
    .transform(Number)
    .pipe(bounds);
}

/** Query parameters of every list. */
export const pageFields = {
  limit: integerParameter(z.int().min(1).max(limits.pageMax))
    .default(limits.pageDefault)
    .describe("Entries a page."),
  cursor: z.string().max(500).optional().describe("`nextCursor` of the page before."),
};

export const nextCursor = z
  .string()
  .nullable()
  .describe("Ask for the next page with `cursor`; null on the last page.");

export const labelFilter = z
  .array(
    z.string().regex(/^[A-Za-z0-9._/-]{1,63}(=[A-Za-z0-9._-]{0,63})?$/, {
      error: "must be KEY or KEY=VALUE, each of at most 63 letters, digits, '.', '_' and '-'",
    }),
  )
  .max(8)
  .optional()
  .describe("`key` or `key=value`; repeat the parameter to ask for several labels at once.");
