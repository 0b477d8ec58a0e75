import assert from "node:assert/strict";
import test from "node:test";
import { groupEqualLines } from "../../src/dashboard/suite/equal-lines.ts";

function makeLines(...all: readonly (readonly (number | null)[])[]) {
  return all.map((values) => ({ values }));
}

test("lines that would hide each other are one group, and others are none", () => {
  const equal = makeLines([27, 27, null], [40, 41, 42], [27, 27.05, 27.1], [null, null, 42]);
  assert.deepEqual(groupEqualLines(equal), [
    [0, 2],
    [1, 3],
  ]);
  const crossing = makeLines([27, 30], [27, 24]);
  assert.deepEqual(groupEqualLines(crossing), [[0], [1]]);
  const apart = makeLines([27, null], [null, 27]);
  assert.deepEqual(groupEqualLines(apart), [[0], [1]]);
});
