import assert from "node:assert/strict";
import test from "node:test";
import { parseByteRange } from "../../src/server/http/blob-response.ts";

const cases: [string, { start: number; end: number } | undefined][] = [
  ["bytes=0-0", { start: 0, end: 0 }],
  ["bytes=2-", { start: 2, end: 9 }],
  ["bytes=2-100", { start: 2, end: 9 }],
  ["bytes=-3", { start: 7, end: 9 }],
  ["bytes=-100", { start: 0, end: 9 }],
  ["bytes=0-1,4-5", undefined],
  ["bytes=5-2", undefined],
  ["bytes=-", undefined],
  ["lines=1-2", undefined],
];

for (const [header, range] of cases) {
  test(`parseByteRange() reads "${header}" of 10 bytes`, () => {
    assert.deepEqual(parseByteRange(header, 10), range);
  });
}

for (const header of ["bytes=10-", "bytes=10-20", "bytes=-0"]) {
  test(`parseByteRange() refuses "${header}" of 10 bytes`, () => {
    assert.throws(() => parseByteRange(header, 10), { code: "range_not_satisfiable" });
  });
}

test("parseByteRange() refuses every range of an empty file", () => {
  assert.throws(() => parseByteRange("bytes=0-", 0), { code: "range_not_satisfiable" });
});
