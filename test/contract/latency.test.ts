import assert from "node:assert/strict";
import test from "node:test";
import { formatRatio } from "../../src/contract/jobs/latency.ts";

const cases = [
  ["an interval in numbers", { ratio: 0.98, ratioLow: 0.97, ratioHigh: 1 }, "×0.98 (0.97 to 1.00)"],
  ["no interval if there is none", { ratio: 0.98 }, "×0.98"],
  [
    "in words that sessions are too few",
    { ratio: 0.98, ratioLow: 0, ratioHigh: Number.MAX_VALUE, sessions: 2 },
    "×0.98 (timed in 2 sessions: too few for an interval)",
  ],
  [
    "the same where their number is not known",
    { ratio: 1.2, ratioLow: 0.5, ratioHigh: 2.1 },
    "×1.20 (timed in too few sessions for an interval)",
  ],
] as const;

for (const [what, latency, text] of cases) {
  test(`formatRatio() writes ${what}`, () => assert.equal(formatRatio(latency), text));
}
