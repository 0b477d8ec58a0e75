import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addSampleOutput,
  emptyOutputComparison,
  summarizeOutputAccuracy,
} from "../../../src/engine/evaluate/output-comparison.ts";
import type { ElementType } from "../../../src/engine/runtime/tensor-data.ts";

function tensor(type: ElementType, shape: number[], elements: { buffer: ArrayBuffer }) {
  return { name: "y", type, shape, bytes: new Uint8Array(elements.buffer) };
}

function floats(shape: number[], ...values: number[]) {
  return tensor("float32", shape, Float32Array.from(values));
}

test("outputAccuracyOf() counts the rows whose largest element stayed in its place", () => {
  const comparison = emptyOutputComparison("y");
  addSampleOutput(comparison, floats([2, 2], 1, 2, 4, 3), floats([2, 2], 2, 1, 4, 3));
  addSampleOutput(comparison, floats([2, 2], 0, 9, 9, 0), floats([2, 2], 0, 9, 9, 0));
  assert.equal(summarizeOutputAccuracy(comparison).top1Agreement, 0.75);
});

test("outputAccuracyOf() counts a row as agreeing where the original's largest element is not the only one", () => {
  const comparison = emptyOutputComparison("y");
  addSampleOutput(comparison, floats([1, 3], 5, 5, 0), floats([1, 3], 5, 5.1, 0));
  assert.equal(summarizeOutputAccuracy(comparison).top1Agreement, 1);
});

test("outputAccuracyOf() has no top-1 agreement for scalars, single columns and flags", () => {
  for (const original of [
    floats([], 1),
    floats([3, 1], 1, 2, 3),
    tensor("bool", [3], Uint8Array.of(1, 0, 1)),
  ]) {
    const comparison = emptyOutputComparison("y");
    addSampleOutput(comparison, original, original);
    assert.equal(summarizeOutputAccuracy(comparison).top1Agreement, null);
  }
});

test("outputAccuracyOf() takes a result of another shape for zeros", () => {
  const comparison = emptyOutputComparison("y");
  addSampleOutput(comparison, floats([2], 3, 4), floats([3], 3, 4, 0));
  assert.deepEqual(summarizeOutputAccuracy(comparison), {
    name: "y",
    sqnrDb: 0,
    cosine: 0,
    maxAbsoluteError: 4,
    top1Agreement: 0,
  });
  assert.equal(comparison.reshapedSamples, 1);
});

for (const [type, elements] of [
  ["float16", Float16Array.of(1.5, -2)],
  ["float64", Float64Array.of(1.5, -2)],
  ["int8", Int8Array.of(1, -2)],
  ["int64", BigInt64Array.of(1n, -2n)],
  ["uint64", BigUint64Array.of(1n, 2n)],
  ["bool", Uint8Array.of(1, 0)],
] as const) {
  test(`addOutput() compares outputs of type ${type}`, () => {
    const comparison = emptyOutputComparison("y");
    addSampleOutput(comparison, tensor(type, [2], elements), tensor(type, [2], elements));
    assert.equal(summarizeOutputAccuracy(comparison).sqnrDb, 150);
    const changed = tensor(type, [2], elements.slice());
    changed.bytes.fill(0);
    addSampleOutput(comparison, tensor(type, [2], elements), changed);
    assert.equal(summarizeOutputAccuracy(comparison).maxAbsoluteError, type === "bool" ? 1 : 2);
  });
}

test("addOutput() compares an output that came as half precision with the original's single precision", () => {
  const comparison = emptyOutputComparison("y");
  addSampleOutput(comparison, floats([2], 1, 2), tensor("float16", [2], Float16Array.of(1, 2)));
  assert.equal(summarizeOutputAccuracy(comparison).sqnrDb, 150);
});
