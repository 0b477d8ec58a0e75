import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bfloat16ToFloat32,
  float32ToBfloat16,
} from "../../../../src/engine/quantize/kernels/convert-bfloat16.ts";

const all = Uint16Array.from({ length: 65_536 }, (_, index) => index);

function widen(halves: Uint16Array): Float32Array {
  const floats = new Float32Array(halves.length);
  bfloat16ToFloat32(halves, floats);
  return floats;
}

test("bfloat16 values come back from float32 as they were; NaN stays NaN", () => {
  const floats = widen(all);
  const back = float32ToBfloat16(floats);
  const changed = all.filter((half, index) => back[index] !== half);
  assert.ok(changed.every((half) => Number.isNaN(widen(Uint16Array.of(half))[0])));
  assert.ok(widen(back).every((float, index) => Object.is(float, floats[index])));
});

test("float32ToBfloat16() rounds to the nearest value, and ties to the even one", () => {
  const above = (bits: number, rest: number) =>
    new Float32Array(Uint32Array.of(bits * 2 ** 16 + rest).buffer);
  for (const half of [0, 1, 0x3f80, 0x3f81, 0x7f7e, 0x8000, 0xbf81]) {
    const wanted = { 0x7fff: half, 0x8000: half + (half % 2), 0x8001: half + 1 };
    for (const [rest, rounded] of Object.entries(wanted)) {
      assert.equal(float32ToBfloat16(above(half, Number(rest)))[0], rounded);
    }
  }
  assert.equal(float32ToBfloat16(Float32Array.of(3.4e38))[0], 0x7f80);
});
