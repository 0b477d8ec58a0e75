import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import { createReporter } from "../../src/worker/reporter.ts";

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

test("log() prints each line and reports it", () => {
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

test("progress() reports no more often than its interval allows", () => {
  const { reporter, events, wait } = makeReporter();
  for (let i = 0; i < 100; i++, wait(10)) reporter.progress(i / 100, "Working");
  assert.equal(events.length, 4);
});
