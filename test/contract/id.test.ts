import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  batchChildName,
  encodeIdTime,
  jobId,
  newId,
  parseBatchChildName,
} from "../../src/contract/id.ts";

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

test("newId() keeps the order of identifiers created within a millisecond", () => {
  const ids = Array.from({ length: 3000 }, () => newId("job", new Date(1_000)));
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids).size, ids.length);
});

test("encodeIdTime() stands between identifiers created before and after", () => {
  assert.ok(newId("job", new Date(999)) < `job-${encodeIdTime(new Date(1_000))}`);
  assert.ok(newId("job", new Date(1_000)) > `job-${encodeIdTime(new Date(1_000))}`);
});

const batchNames = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,40}[a-z0-9])?$/);

test("parseBatchChildName() is the inverse of batchChildName()", () => {
  fc.assert(
    fc.property(batchNames, fc.nat({ max: 1_000_000 }), (batch, index) => {
      assert.deepEqual(parseBatchChildName(batchChildName(batch, index)), { batch, index });
    }),
  );
});

test("parseBatchChildName() takes no name that batchChildName() does not give", () => {
  const digits = fc.stringMatching(/^[0-9]{0,7}$/);
  fc.assert(
    fc.property(batchNames, digits, (batch, number) => {
      const name = `${batch}-${number}`;
      const child = parseBatchChildName(name);
      if (child !== undefined) assert.equal(batchChildName(child.batch, child.index), name);
    }),
  );
  for (const name of ["batch", "batch-1", "batch-012", "batch-00012", "-0001", "batch-0001x"]) {
    assert.equal(parseBatchChildName(name), undefined, name);
  }
});
