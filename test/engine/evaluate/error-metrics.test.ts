import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addErrors,
  emptyErrorSums,
  errorMetrics,
} from "../../../src/engine/evaluate/error-metrics.ts";

function figures(original: number[], changed: number[]) {
  const sums = emptyErrorSums();
  addErrors(sums, original, changed);
  return errorMetrics(sums);
}

test("errorFigures() gives 150 dB and cosine 1 for identical tensors, zeros and non-finite values included", () => {
  const expected = { sqnrDb: 150, cosine: 1, maxAbsoluteError: 0 };
  assert.deepEqual(figures([1, -2, 3], [1, -2, 3]), expected);
  assert.deepEqual(figures([0, 0], [0, 0]), expected);
  assert.deepEqual(figures([1, NaN, Infinity], [1, NaN, Infinity]), expected);
  assert.deepEqual(figures([0], [-0]), expected);
});

test("errorFigures() gives -150 dB and cosine 0 where a value became or ceased to be finite", () => {
  const expected = { sqnrDb: -150, cosine: 0, maxAbsoluteError: null };
  assert.deepEqual(figures([1, 2], [1, NaN]), expected);
  assert.deepEqual(figures([1, Infinity], [1, -Infinity]), expected);
  assert.deepEqual(figures([1, NaN], [1, 2]), expected);
});

test("errorFigures() gives figures also where squares are too large for a double", () => {
  const expected = { sqnrDb: -150, cosine: 0, maxAbsoluteError: null };
  assert.deepEqual(figures([1e200], [2e200]), expected);
  assert.deepEqual(figures([1e200], [1e200]).sqnrDb, 150);
});

test("errorFigures() gives 0 dB and cosine 0 for a tensor that became zero", () => {
  assert.deepEqual(figures([3, 4], [0, 0]), { sqnrDb: 0, cosine: 0, maxAbsoluteError: 4 });
});

test("errorFigures() gives -150 dB for noise on a tensor of zeros", () => {
  assert.deepEqual(figures([0, 0], [0, 1]), { sqnrDb: -150, cosine: 0, maxAbsoluteError: 1 });
});

test("errorFigures() gives the ratio of signal and noise in dB", () => {
  assert.deepEqual(figures([10, 0], [10, 1]), {
    sqnrDb: 20,
    cosine: 100 / Math.sqrt(100 * 101),
    maxAbsoluteError: 1,
  });
});

test("addErrors() gives the same figures for a tensor in one piece and in two", () => {
  const numbers = fc.array(fc.tuple(fc.float({ noNaN: true }), fc.float()), {
    minLength: 1,
    maxLength: 20,
  });
  fc.assert(
    fc.property(numbers, fc.nat(20), (pairs, cut) => {
      const [original, changed] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)];
      const sums = emptyErrorSums();
      addErrors(sums, original.slice(0, cut), changed.slice(0, cut));
      addErrors(sums, original.slice(cut), changed.slice(cut));
      assert.deepEqual(errorMetrics(sums), figures(original, changed));
    }),
  );
});
