import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseUnrounded } from "../../src/engine/choose-unrounded.ts";

/** Noise of each operator in integers, and its multiplications: errors of all add up. */
const operators = [
  { noise: 0.02, multiplications: 1000 },
  { noise: 0.008, multiplications: 10 },
  { noise: 0.004, multiplications: 100 },
  { noise: 0.0001, multiplications: 10 },
];
const parts = operators.map(({ multiplications }, index) => ({
  weights: [index],
  multiplications,
}));

async function choose(sqnrDb: (noise: number, beforeSoftmax: boolean) => number) {
  let runs = 0;
  const chosen = await chooseUnrounded(parts, {
    hasOthers: false,
    log: () => {},
    measureSqnrDb: (unrounded, options) => {
      runs++;
      const noise = operators.reduce(
        (sum, each, index) => sum + (unrounded.has(index) ? 0 : each.noise),
        0,
      );
      return Promise.resolve(sqnrDb(noise, options?.beforeSoftmax ?? false));
    },
  });
  return {
    chosen: [...chosen.keys()].toSorted((a, b) => a - b),
    reasons: [...chosen.values()],
    runs,
  };
}

const toDb = (noise: number) => -10 * Math.log10(noise);

test("operators with the most error for their multiplications stay in floating point", async () => {
  const { chosen, reasons } = await choose((noise) => toDb(noise));
  assert.deepEqual(chosen, [0, 1, 2]);
  assert.match(reasons[0] ?? "", /would cost too much in integers: 21\.0 dB of SQNR by itself/v);
});

test("no more stay in floating point than are needed", async () => {
  const { chosen } = await choose((noise) => toDb(noise / 3.1));
  assert.deepEqual(chosen, [1]);
});

test("one measurement is enough where the result is accurate", async () => {
  const { chosen, runs } = await choose((noise) => toDb(noise / 100));
  assert.deepEqual(chosen, []);
  assert.equal(runs, 1);
});

test("probabilities that happen to be right on few samples do not hide the error before them", async () => {
  const { chosen } = await choose((noise, beforeSoftmax) =>
    beforeSoftmax ? toDb(noise / 3.1) : noise < 0.03 ? 40 : 25,
  );
  assert.deepEqual(chosen, [1]);
  const more = await choose((noise, beforeSoftmax) =>
    beforeSoftmax ? toDb(noise / 2) : noise < 0.03 ? 40 : 25,
  );
  assert.deepEqual(more.chosen, [0, 1, 2]);
});
