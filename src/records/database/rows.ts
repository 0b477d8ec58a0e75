import type { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";

/** A page's cursor: the last id on it, opaque to callers. */
function encodeCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

export function parseCursor(cursor: string, id: z.ZodType<string>): string {
  const decoded = id.safeParse(Buffer.from(cursor, "base64url").toString());
  if (decoded.success) return decoded.data;
  throw new ServiceError("invalid_cursor", `Cursor "${cursor}" is not one that this list gave`);
}

/** A page of `rows`: one row more than the limit means that another page follows. */
export function buildPage<T extends { id: string }>(rows: readonly T[], limit: number) {
  const entries = rows.slice(0, limit);
  const last = entries.at(-1);
  return {
    entries,
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(last.id) : null,
  };
}

/** How many of these fit into so many bytes: at least one. */
export function countFitting(
  rows: readonly { readonly bytes: number }[],
  maxBytes: number,
): number {
  let bytes = 0;
  const tooMany = rows.findIndex((row) => (bytes += Number(row.bytes)) > maxBytes);
  return tooMany === -1 ? rows.length : Math.max(1, tooMany);
}

const rowsPerInsert = 200;

/** The rows in parts that are inserted by one statement each. */
export function* chunkRows<T>(rows: readonly T[]): Generator<T[]> {
  for (let start = 0; start < rows.length; start += rowsPerInsert) {
    yield rows.slice(start, start + rowsPerInsert);
  }
}
