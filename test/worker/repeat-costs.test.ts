import assert from "node:assert/strict";
import { test } from "node:test";
import { repeatCosts } from "../../src/worker/report-forecast.ts";

const took = (originalBytes: number, peakMemoryBytes: number, seconds?: number) => ({
  originalBytes,
  peakMemoryBytes,
  diskBytes: peakMemoryBytes / 10,
  seconds,
});

test("a job takes the most memory and disk of earlier ones, and their median time", () => {
  const earlier = [took(100, 500, 2), took(102, 620, 90), took(100, 560, 3)];
  assert.deepEqual(repeatCosts(earlier, 100), {
    peakMemoryBytes: 620,
    diskBytes: 62,
    seconds: 3,
  });
});

test("of models of another size only the time for each byte counts", () => {
  assert.deepEqual(repeatCosts([took(100, 500, 2), took(90, 400)], 200), { seconds: 4 });
});

test("without earlier jobs nothing is known", () => {
  assert.deepEqual(repeatCosts([], 100), {});
});
