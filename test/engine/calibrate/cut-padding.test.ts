import assert from "node:assert/strict";
import { test } from "node:test";
import { cutPadding } from "../../../src/engine/calibrate/cut-padding.ts";
import type { TensorData } from "../../../src/engine/evaluate/tensor-data.ts";

function int64(name: string, rows: readonly (readonly number[])[]): TensorData {
  const values = BigInt64Array.from(rows.flat(), BigInt);
  const shape = [rows.length, rows[0]?.length ?? 0];
  return { name, type: "int64", shape, bytes: new Uint8Array(values.buffer) };
}

function signatureOf(positions: number | string) {
  const inputs = ["input_ids", "attention_mask"].map((name) => {
    return { name, isTensor: true as const, type: "int64", shape: ["rows", positions] };
  });
  return { signature: { inputs, outputs: [] } };
}

const ids = int64("input_ids", [
  [0, 11, 12, 0, 0, 0],
  [21, 22, 23, 24, 0, 0],
]);
const mask = int64("attention_mask", [
  [0, 1, 1, 0, 0, 0],
  [1, 1, 1, 1, 0, 0],
]);

test("Positions at the end that are padding in each row are cut", () => {
  assert.deepEqual(cutPadding([ids, mask], signatureOf("positions")), [
    int64("input_ids", [
      [0, 11, 12, 0],
      [21, 22, 23, 24],
    ]),
    int64("attention_mask", [
      [0, 1, 1, 0],
      [1, 1, 1, 1],
    ]),
  ]);
});

test("Samples stay as they are where their length is not free", () => {
  const position = int64("position", [[1]]);
  for (const [sample, positions] of [
    [[ids, mask], 6],
    [[ids, mask, position], "positions"],
    [[ids], "positions"],
  ] as const) {
    assert.equal(cutPadding(sample, signatureOf(positions)), sample);
  }
});

test("One position is left of a sample that is padding throughout", () => {
  const none = int64("attention_mask", [[0, 0, 0]]);
  assert.deepEqual(cutPadding([none], signatureOf("positions")), [int64("attention_mask", [[0]])]);
});
