import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnnumberedEvent } from "../../src/contract/worker.ts";
import { createReporter, splitLogLines } from "../../src/worker/reporter.ts";

function makeReporter() {
  const events: UnnumberedEvent[] = [];
  const printed: string[] = [];
  let time = 0;
  const reporter = createReporter({
    sender: { add: (event) => events.push(event) },
    now: () => new Date(time),
    progressIntervalMs: 250,
    print: (line) => printed.push(line),
  });
  return { reporter, events, printed, wait: (milliseconds: number) => (time += milliseconds) };
}

test("log() prints each line and tells it", () => {
  const { reporter, events, printed } = makeReporter();
  reporter.log("one\ntwo");
  reporter.log("three", "stderr");
  assert.deepEqual(printed, ["one", "two", "three"]);
  assert.deepEqual(events, [
    { type: "log", stream: "stdout", text: "one" },
    { type: "log", stream: "stdout", text: "two" },
    { type: "log", stream: "stderr", text: "three" },
  ]);
});

test("linesOf() cuts long lines between characters and loses none", () => {
  const text = `a${"€".repeat(50_000)}`;
  const lines = splitLogLines(text);
  assert.equal(lines.length, 3);
  assert.equal(lines.join(""), text);
  for (const line of lines) assert(Buffer.byteLength(line) <= 65_536);
});

test("linesOf() leaves no terminal command in a line", () => {
  assert.deepEqual(splitLogLines("name \u001b[2J\u0007 \u009b31m\tend"), [
    "name \u{fffd}[2J\u{fffd} \u{fffd}31m\tend",
  ]);
});

test("progress() tells no step more often than it is to", () => {
  const { reporter, events, wait } = makeReporter();
  for (let i = 0; i < 100; i++, wait(10)) reporter.progress(i / 100, "Working");
  assert.equal(events.length, 4);
});
