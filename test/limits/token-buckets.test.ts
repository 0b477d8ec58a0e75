import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBuckets } from "../../src/limits/token-buckets.ts";

const options = { capacity: 2, refillMs: 100, maxKeys: 2 };

test("a full bucket may be emptied at once, and fills up with time", () => {
  const buckets = new TokenBuckets(options);
  assert.deepEqual(
    [0, 0, 0].map((at) => buckets.take("a", at)),
    [true, true, false],
  );
  assert.equal(buckets.take("a", 99), false);
  assert.equal(buckets.take("a", 200), true);
  assert.equal(buckets.count("a", 10_000), 2);
});

test("a clock that is set back refuses no longer than a bucket takes to fill", () => {
  const buckets = new TokenBuckets(options);
  for (const at of [1e9, 1e9, 1e9]) buckets.take("a", at);
  assert.equal(buckets.take("a", 0), false);
  assert.equal(buckets.take("a", 100), true);
});

test("keys beyond the limit are forgotten, the one used least recently first", () => {
  const buckets = new TokenBuckets(options);
  for (const key of ["a", "b", "a", "c"]) buckets.take(key, 0);
  assert.equal(buckets.count("a", 0), 0);
  assert.equal(buckets.count("b", 0), 2);
});
