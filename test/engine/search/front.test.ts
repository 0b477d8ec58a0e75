import assert from "node:assert/strict";
import { test } from "node:test";
import { Front } from "../../../src/engine/search/front.ts";
import { Prediction } from "../../../src/engine/search/prediction.ts";

const unchanged = (bytes: number) => ({ bytes, noise: [] });
const units = [
  [unchanged(400), { bytes: 100, noise: [1e-4] }, { bytes: 60, noise: [1e-2] }],
  [unchanged(400), { bytes: 100, noise: [1e-2] }, { bytes: 60, noise: [1] }],
  [unchanged(40), { bytes: 10, noise: [1e-5] }],
] as const;

test("the front takes what saves most for its noise first", () => {
  const front = new Front(units);
  const choices = Array.from({ length: front.length + 1 }, (_, count) => front.takeMoves(count));
  assert.deepEqual(choices, [
    [0, 0, 0],
    [1, 0, 0],
    [1, 0, 1],
    [1, 1, 1],
    [2, 1, 1],
    [2, 2, 1],
  ]);
  assert.deepEqual(
    choices.map((choice) => front.sumBytes(choice)),
    [840, 540, 510, 210, 170, 130],
  );
});

test("every point of the front is the least noisy of all choices of no more bytes", () => {
  const front = new Front(units);
  const all = units[0].flatMap((_, a) =>
    units[1].flatMap((__, b) => units[2].map((___, c) => [a, b, c])),
  );
  const noise = (choice: readonly number[]) => front.sumNoise(choice)[0] ?? 0;
  for (let count = 1; count <= front.length; count++) {
    const point = front.takeMoves(count);
    const rivals = all.filter((choice) => front.sumBytes(choice) <= front.sumBytes(point));
    assert.equal(noise(point), Math.min(...rivals.map(noise)));
  }
});

test("a limit of noise is kept, and a unit that would break it is left as it is", () => {
  const front = new Front(units);
  assert.deepEqual(front.chooseWithin(2e-4), [1, 0, 1]);
  assert.deepEqual(front.chooseWithin(1.2e-5), [0, 0, 1]);
  assert.deepEqual(front.chooseWithin(1e-9), [0, 0, 0]);
  assert.deepEqual(front.chooseWithin(10), [2, 2, 1]);
});

test("a limit of bytes is kept, and what is left of it takes noise away", () => {
  const front = new Front(units);
  assert.deepEqual(front.chooseBytes(840), [0, 0, 0]);
  assert.deepEqual(front.chooseBytes(539), [1, 0, 1]);
  assert.deepEqual(front.chooseBytes(199), [2, 1, 1]);
  assert.deepEqual(front.chooseBytes(200), [2, 1, 0]);
  assert.deepEqual(front.chooseBytes(1), [2, 2, 1]);
});

test("a weight that would save far more bytes than are too many stays, where smaller ones serve", () => {
  const small = [unchanged(40), { bytes: 10, noise: [1e-2] }];
  const front = new Front([[unchanged(400), { bytes: 100, noise: [8e-2] }], small, small]);
  assert.deepEqual(front.chooseBytes(460), [0, 1, 0]);
  assert.deepEqual(front.chooseBytes(410), [1, 0, 0]);
});

test("forms that were not measured are not chosen", () => {
  const front = new Front([[unchanged(100), { bytes: 10, noise: undefined }]]);
  assert.deepEqual([front.length, front.chooseWithin(1)], [0, [0]]);
});

test("points that were run correct the predictions between them", () => {
  const prediction = new Prediction(new Front(units));
  assert.equal(prediction.predict([1, 0, 0]).toFixed(2), "40.00");
  prediction.addAnchor([1, 0, 0], 38);
  prediction.addAnchor([0, 1, 0], 21);
  assert.equal(prediction.predict([1, 0, 0]).toFixed(2), "38.00");
  assert.equal(prediction.predict([0, 0, 1]).toFixed(2), "48.00");
  const between = prediction.predict([2, 0, 0]);
  assert.equal(between.toFixed(2), "21.00");
});
