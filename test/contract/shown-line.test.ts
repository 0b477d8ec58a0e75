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

test("what joins or colours characters of texts is no hidden character", () => {
  for (const text of [
    "\u{1f469}\u200d\u{1f4bb}",
    "\u2764\ufe0f\u200d\u{1f525}",
    "\u0645\u06cc\u200c\u062e",
    "\u26a0\ufe0f",
  ]) {
    assert.equal(joinLines(text), text);
  }
  for (const text of ["a\u200d", "\ufe0fa", "\u26a0\u200d\u200c\u200d", "a\u{e0061}\u{e0062}"]) {
    assert.notEqual(joinLines(text), text);
  }
});

test("lines are joined by single spaces, and other spaces stay", () => {
  assert.equal(joinLines("  a  b \n\t\r\n c\u2028d\te "), "  a  b c d\te ");
});

test("joining lines takes no longer for spaces than for other characters", () => {
  const before = process.threadCpuUsage();
  joinLines(" ".repeat(1_000_000));
  assert.ok(process.threadCpuUsage(before).user < 1_000_000);
});
