import assert from "node:assert/strict";
import { test } from "node:test";
import { invertSoftmax } from "../../../src/engine/evaluate/invert-softmax.ts";
import { tensorNumbers } from "../../../src/engine/runtime/tensor-data.ts";

test("what a softmax was taken of is found again, less the mean of its row", () => {
  const logits = [
    [1, 4, -2],
    [-30, 0, 3],
  ];
  const probabilities = logits.flatMap((row) => {
    const powers = row.map(Math.exp);
    const total = powers.reduce((sum, each) => sum + each, 0);
    return powers.map((each) => each / total);
  });
  const bytes = new Uint8Array(Float32Array.from(probabilities).buffer);
  const found = invertSoftmax({ name: "y", type: "float32", shape: [1, 2, 3], bytes });
  for (const [index, expected] of [0, 3, -3, -21, 9, 12].entries()) {
    assert.ok(Math.abs(Number(tensorNumbers(found)[index]) - expected) < 1e-4);
  }
});
