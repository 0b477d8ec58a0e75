import { isDeepStrictEqual } from "node:util";

/**
 * The JSON merge patch that turns `before` into `after`: null deletes a field, arrays are replaced
 * whole. Undefined without a difference.
 */
export function mergePatch(
  before: object,
  after: object,
): Readonly<Record<string, unknown>> | undefined {
  const old = new Map<string, unknown>(Object.entries(before));
  const wanted = new Map<string, unknown>(
    Object.entries(after).filter(([, value]) => value !== undefined),
  );
  const patch: Record<string, unknown> = {};
  for (const name of old.keys()) {
    if (!wanted.has(name) && old.get(name) !== undefined) patch[name] = null;
  }
  for (const [name, value] of wanted) {
    const known = old.get(name);
    if (isPlainObject(known) && isPlainObject(value)) {
      const inner = mergePatch(known, value);
      if (inner !== undefined) patch[name] = inner;
    } else if (!isDeepStrictEqual(known, value)) patch[name] = value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isPlainObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
