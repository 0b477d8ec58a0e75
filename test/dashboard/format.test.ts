import assert from "node:assert/strict";
import test from "node:test";
import { formatAge, formatDuration, formatSaving } from "../../src/dashboard/shared/format.ts";

const now = Date.parse("2026-11-23T12:00:00Z");
const ages: [number, string][] = [
  [0, "now"],
  [-30, "now"],
  [59, "59 s ago"],
  [60, "1 min ago"],
  [86_399, "23 h ago"],
  [86_400, "2026-11-22"],
  [-7200, "in 2 h 00 min"],
  [-90_000, "2026-11-24"],
];

for (const [seconds, text] of ages) {
  test(`formatAge() of ${seconds} s is "${text}"`, () => {
    assert.equal(formatAge(now - seconds * 1000, now), text);
  });
}

const durations: [number, string][] = [
  [0, "0 ms"],
  [-5, "0 ms"],
  [999.4, "999 ms"],
  [41_000, "41 s"],
  [128_000, "2 min 08 s"],
  [3_600_000, "1 h 00 min"],
  [90_000_000, "1 d 1 h"],
];

for (const [ms, text] of durations) {
  test(`formatDuration() of ${ms} ms is "${text}"`, () => assert.equal(formatDuration(ms), text));
}

test("a result that is larger than its original is said to be so", () => {
  assert.deepEqual([6_780_000, 0, -1234].map(formatSaving), [
    "6.78 MB smaller than the original",
    "as large as the original",
    "1.23 kB larger than the original",
  ]);
});
