import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseFloatingPoint } from "../../src/engine/choose-floating-point.ts";

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

/** @param foldedNoise of each operator whose weight is restored at load */
async function choose(
  sqnrDb: (noise: number, beforeSoftmax: boolean) => number,
  foldedNoise = 0.00001,
) {
  let runs = 0;
  const { folded, halved } = await chooseFloatingPoint(parts, {
    hasOthers: false,
    log: () => {},
    measureSqnrDb: (restored, options) => {
      runs++;
      const noise = operators.reduce((sum, each, index) => {
        if (restored.halved.has(index)) return sum;
        return sum + (restored.folded.has(index) ? foldedNoise : each.noise);
      }, 0);
      return Promise.resolve(sqnrDb(noise, options?.beforeSoftmax ?? false));
    },
  });
  return {
    folded: [...folded.keys()].toSorted((a, b) => a - b),
    halved: [...halved.keys()].toSorted((a, b) => a - b),
    reasons: [...folded.values(), ...halved.values()],
    runs,
  };
}

const toDb = (noise: number) => -10 * Math.log10(noise);

test("operators with the most error for their multiplications stay in floating point", async () => {
  const { folded, halved, reasons } = await choose((noise) => toDb(noise));
  assert.deepEqual(folded, [0, 1, 2]);
  assert.deepEqual(halved, []);
  assert.match(reasons[0] ?? "", /would cost too much in integers: 21\.0 dB of SQNR by itself/v);
});

test("their weights keep half precision where fewer bits would cost too much", async () => {
  const { folded, halved } = await choose((noise) => toDb(noise), 0.003);
  assert.deepEqual(folded, []);
  assert.deepEqual(halved, [0, 1, 2]);
});

test("one measurement is enough where the result is accurate", async () => {
  const { folded, halved, runs } = await choose((noise) => toDb(noise / 100));
  assert.deepEqual([...folded, ...halved], []);
  assert.equal(runs, 1);
});

test("probabilities that happen to be right on few samples do not hide the error before them", async () => {
  const { folded } = await choose((noise, beforeSoftmax) =>
    beforeSoftmax ? toDb(noise / 3.1) : noise < 0.03 ? 40 : 25,
  );
  assert.deepEqual(folded, [1]);
  const more = await choose((noise, beforeSoftmax) =>
    beforeSoftmax ? toDb(noise / 2) : noise < 0.03 ? 40 : 25,
  );
  assert.deepEqual(more.folded, [0, 1, 2]);
});
