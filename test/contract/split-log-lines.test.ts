import assert from "node:assert/strict";
import { test } from "node:test";
import { splitLogLines } from "../../src/contract/jobs/split-log-lines.ts";

test("splitLogLines() cuts long lines between characters and loses none", () => {
  const text = `a${"€".repeat(50_000)}`;
  const lines = splitLogLines(text);
  assert.equal(lines.length, 3);
  assert.equal(lines.join(""), text);
  for (const line of lines) assert(Buffer.byteLength(line) <= 65_536);
});

test("splitLogLines() leaves no terminal command in a line", () => {
  assert.deepEqual(splitLogLines("name \u001b[2J\u0007 \u009b31m\tend"), [
    "name \u{fffd}[2J\u{fffd} \u{fffd}31m\tend",
  ]);
});
