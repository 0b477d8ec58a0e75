import assert from "node:assert/strict";
import { test } from "node:test";
import { addErrors, emptyErrorSums } from "../../../../src/engine/evaluate/error-metrics.ts";
import {
  float16ToFloat32,
  float32ToFloat16,
} from "../../../../src/engine/quantize/kernels/convert-floats.ts";
import { randomNumbers, weightValues } from "./weight-values.ts";

function toHalves(values: Float32Array) {
  const halves = new Uint16Array(values.length);
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  const sums = emptyErrorSums();
  float32ToFloat16(values, halves, losses, sums);
  return { halves, losses, sums };
}

test("float16ToFloat32() is exact for all of the 65,536 half-precision values", () => {
  const halves = Uint16Array.from({ length: 65_536 }, (_, index) => index);
  const floats = new Float32Array(65_536);
  float16ToFloat32(halves, floats);
  assert.deepEqual([...floats], [...new Float16Array(halves.buffer)]);
});

test("float32ToFloat16() rounds as the platform does, for every half-precision value, its neighbours and the ties between", () => {
  const values: number[] = [];
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const halves = new Float16Array(Uint16Array.from({ length: 0x7c00 }, (_, index) => index).buffer);
  for (let index = 0; index + 1 < halves.length; index++) {
    const half = Number(halves[index]);
    for (const value of [half, (half + Number(halves[index + 1])) / 2]) {
      float[0] = value;
      const middle = Number(bits[0]);
      for (const near of [middle - 1, middle, middle + 1]) {
        bits[0] = Math.max(0, near);
        values.push(Number(float[0]), -Number(float[0]));
      }
    }
  }
  const floats = Float32Array.from([
    ...values,
    65_519.99,
    65_520,
    1e9,
    3.4e38,
    Infinity,
    -Infinity,
    1e-45,
    2 ** -25,
  ]);
  assert.deepEqual(toHalves(floats).halves, new Uint16Array(new Float16Array(floats).buffer));
});

test("float32ToFloat16() rounds random bit patterns as the platform does and keeps NaN", () => {
  const next = randomNumbers(5);
  const floats = new Float32Array(
    Uint32Array.from({ length: 100_003 }, () => next() * 2 ** 32).buffer,
  );
  const ours = new Float16Array(toHalves(floats).halves.buffer);
  assert.deepEqual(ours, new Float16Array(floats));
});

test("float32ToFloat16() counts what overflows, vanishes or loses bits", () => {
  const { losses, sums } = toHalves(
    Float32Array.of(0, -0, 1, 65_519, 65_520, -1e30, 1e-8, -1e-40, 1e-5, -3e-8),
  );
  assert.deepEqual(losses, { overflowed: 2, vanished: 2, subnormal: 2 });
  assert.equal(sums.notFinite, true);
  assert.equal(toHalves(Float32Array.of(1, NaN)).sums.notFinite, true);
  assert.equal(toHalves(Float32Array.of(1, Infinity)).losses.overflowed, 0);
});

test("float32ToFloat16() measures the error that it made", () => {
  const values = weightValues(40_001);
  const { halves, sums } = toHalves(values);
  const wanted = emptyErrorSums();
  addErrors(wanted, values, new Float16Array(halves.buffer));
  for (const key of ["signal", "noise", "changed", "product", "maxAbsoluteError"] as const) {
    assert.ok(
      Math.abs(sums[key] - wanted[key]) <= 1e-4 * wanted[key],
      `${key} ${sums[key]}, not ${wanted[key]}`,
    );
  }
  assert.equal(sums.notFinite, false);
});
