import type { z } from "zod";
import { ServiceError } from "../contract/errors.ts";

/** A page's cursor: the last id on it, opaque to callers. */
function encodeCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

export function parseCursor(cursor: string, id: z.ZodType<string>): string {
  const decoded = id.safeParse(Buffer.from(cursor, "base64url").toString());
  if (!decoded.success)
    throw new ServiceError("invalid_cursor", `Cursor "${cursor}" is not one that this list gave`);
  return decoded.data;
}

interface Page<T> {
  readonly entries: T[];
  readonly nextCursor: string | null;
}

/** Makes a page of entries of which one more than the limit was asked for. */
export function buildPage<T extends { id: string }>(found: readonly T[], limit: number): Page<T> {
  const entries = found.slice(0, limit);
  const last = entries.at(-1);
  return {
    entries,
    nextCursor: found.length > limit && last !== undefined ? encodeCursor(last.id) : null,
  };
}
