import assert from "node:assert/strict";
import test from "node:test";
import { boundedText } from "../../src/contract/text/bounded-text.ts";

test("texts are counted by characters, and have none that PostgreSQL does not store", () => {
  const text = boundedText({ min: 1, max: 2 });
  for (const taken of ["a", "😀😀"]) assert.equal(text.parse(taken), taken);
  for (const [refused, message] of [
    ["", "must have 1 to 2 characters"],
    ["abc", "must have 1 to 2 characters"],
    ["a\0", "must not have the character U+0000"],
  ]) {
    assert.equal(text.safeParse(refused).error?.issues[0]?.message, message);
  }
});
