import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { encodeIdTime, jobId, newId } from "../../src/contract/id.ts";

const dates = fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true });

test("newId() gives valid identifiers that sort by time", () => {
  fc.assert(
    fc.property(dates, dates, (a, b) => {
      const [first, second] = [newId("job", a), newId("job", b)];
      assert.ok(jobId.safeParse(first).success && jobId.safeParse(second).success);
      if (a < b) assert.ok(first < second);
    }),
  );
});

test("newId() keeps the order of identifiers made within a millisecond", () => {
  const ids = Array.from({ length: 3000 }, () => newId("job", new Date(1_000)));
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids).size, ids.length);
});

test("idTime() stands between identifiers made before and after", () => {
  assert.ok(newId("job", new Date(999)) < `job-${encodeIdTime(new Date(1_000))}`);
  assert.ok(newId("job", new Date(1_000)) > `job-${encodeIdTime(new Date(1_000))}`);
});
