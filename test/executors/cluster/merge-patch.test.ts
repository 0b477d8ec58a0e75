import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { mergePatch } from "../../../src/executors/cluster/custom-resources.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** RFC 7396, as the API server does it. */
function applied(target: Json | undefined, patch: Json): Json {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const isObject =
    target !== undefined && target !== null && typeof target === "object" && !Array.isArray(target);
  const result: { [name: string]: Json } = isObject ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = applied(result[name], value);
  }
  return result;
}

// Objects as the API server keeps them: a field is there with a value, or it is not there.
const leaf = fc.oneof(fc.boolean(), fc.integer(), fc.string(), fc.array(fc.integer()));
const tree = fc.letrec<{ object: Record<string, unknown> }>((tie) => ({
  object: fc.dictionary(
    fc.constantFrom("a", "b", "c"),
    fc.oneof({ maxDepth: 3 }, leaf, tie("object")),
    {
      noNullPrototype: true,
    },
  ),
})).object;

test("mergePatch() makes one object of the other, and is undefined for those that are alike", () => {
  fc.assert(
    fc.property(tree, tree, (before, after) => {
      const patch = mergePatch(before, after);
      if (patch === undefined) assert.deepEqual(before, after);
      else assert.deepEqual(applied(before as Json, patch as Json), after);
    }),
  );
});
