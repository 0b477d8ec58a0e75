import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { truncate } from "../../src/contract/text/truncate.ts";

const texts = fc.string({ unit: fc.constantFrom("a", "é", "…", "😀", "👩‍🚀"), maxLength: 60 });
const lengths = fc.integer({ min: 1, max: 80 });

test("truncate() never gives more than the largest length, nor half a character", () => {
  fc.assert(
    fc.property(texts, lengths, (text, maxLength) => {
      const truncated = truncate(text, maxLength);
      assert.ok(truncated.length <= maxLength, truncated);
      assert.ok(truncated.isWellFormed(), JSON.stringify(truncated));
    }),
  );
});

test("truncate() leaves a text that fits unchanged", () => {
  fc.assert(
    fc.property(texts, fc.nat({ max: 10 }), (text, room) => {
      assert.equal(truncate(text, text.length + room), text);
    }),
  );
});

test("truncate() keeps as much of a longer text's start as fits before an ellipsis", () => {
  fc.assert(
    fc.property(texts, lengths, (text, maxLength) => {
      fc.pre(text.length > maxLength);
      const truncated = truncate(text, maxLength);
      const start = truncated.slice(0, -1);
      assert.equal(truncated.at(-1), "…");
      assert.ok(text.startsWith(start), start);
      const [next = ""] = text.slice(start.length);
      assert.ok(start.length + next.length + 1 > maxLength, `${next} fits too`);
    }),
  );
});

test("truncate() ends before an emoji that does not fit whole", () => {
  assert.equal(truncate("ab😀cd", 4), "ab…");
  assert.equal(truncate("ab😀cd", 5), "ab😀…");
});
