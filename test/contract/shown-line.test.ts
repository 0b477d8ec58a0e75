import assert from "node:assert/strict";
import test from "node:test";
import { joinLines } from "../../src/contract/text/hidden-characters.ts";
import { shownLine } from "../../src/contract/text/shown-line.ts";

test("a text of a worker is cut, and never refused", () => {
  const line = shownLine(5);
  for (const [text, shown] of [
    ["short", "short"],
    ["longer", "long…"],
    ["", ""],
    ["a\n b", "a b"],
    ["\u001b[31", "\u{fffd}[31"],
    ["\ud800", "\u{fffd}"],
    ["\u{1f600}\u{1f600}\u{1f600}", "\u{1f600}\u{1f600}…"],
  ] as const) {
    assert.equal(line.parse(text), shown);
  }
});

test("lines are joined by single spaces, and other spaces stay", () => {
  assert.equal(joinLines("  a  b \n\t\r\n c\u2028d\te "), "  a  b c d\te ");
});

test("joining lines takes no longer for spaces than for other characters", () => {
  const startedAt = performance.now();
  joinLines(" ".repeat(1_000_000));
  assert.ok(performance.now() - startedAt < 1000);
});
