import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AffineFormat } from "../../../../src/engine/quantize/kernels/affine-parameters.ts";
import type { AffineTask, FloatType } from "../../../../src/engine/quantize/tasks/weight-task.ts";
import { weightValues } from "../kernels/weight-values.ts";
import { decodeFloats, encodeFloats, runTask, smallLimits, sourceFields } from "./run-task.ts";

interface Case {
  readonly matrices: number;
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
  readonly format: AffineFormat;
  readonly type: FloatType;
  readonly seed: number;
}

const cases: fc.Arbitrary<Case> = fc.record({
  matrices: fc.integer({ min: 1, max: 4 }),
  outer: fc.integer({ min: 1, max: 9 }),
  channels: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 90, max: 300 })),
  inner: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 }), fc.constant(130)),
  format: fc.record({
    type: fc.constant("int8" as const),
    symmetric: fc.boolean(),
    reduceRange: fc.boolean(),
  }),
  type: fc.constantFrom("float32", "float16", "bfloat16"),
  seed: fc.integer(),
});

function createTask(one: Case): { task: AffineTask; values: Float32Array; lengths: number[] } {
  const { matrices, outer, channels, inner, format, type, seed } = one;
  const drawn = weightValues(matrices * outer * channels * inner, seed);
  const values = decodeFloats(bytesWithin(encodeFloats(drawn, type)), type);
  const task: AffineTask = {
    kind: "linear",
    ...sourceFields(values, type),
    matrices,
    channels,
    inner,
    format,
    scaleType: type,
    outputs: { quantizedValues: 0, scales: 1, zeroPoints: format.symmetric ? undefined : 2 },
  };
  const scaleBytes = type === "float32" ? 4 : 2;
  const count = matrices * channels;
  return { task, values, lengths: [values.length, count * scaleBytes, count] };
}

function bytesWithin({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function roundHalfToEven(value: number): number {
  const magic = 1.5 * 2 ** 52;
  return value + magic - magic;
}

function limitsOf({ symmetric, reduceRange }: AffineFormat): [number, number] {
  if (reduceRange) return [-64, 64];
  return symmetric ? [-127, 127] : [-128, 127];
}

/** Rounds to a type, half to even. */
function roundTo(value: number, type: FloatType): number {
  if (type === "float32") return Math.fround(value);
  if (type === "float16") return Number(Float16Array.of(value)[0]);
  const [word = 0] = new Uint32Array(Float32Array.of(value).buffer);
  const rounded = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000;
  return Number(new Float32Array(Uint32Array.of(rounded >>> 0).buffer)[0]);
}

/** Scale, zero point and quantized values of a channel, by the definition of QuantizeLinear. */
function quantizePlainly(channel: readonly number[], format: AffineFormat, type: FloatType) {
  const [lowest, highest] = limitsOf(format);
  let [low, high] = [Math.min(0, ...channel), Math.max(0, ...channel)];
  if (format.symmetric) {
    high = Math.max(-low, high);
    low = -high;
  }
  const exact = (high - low) / (highest - lowest);
  const isUsable = exact >= 2 ** -126;
  const middle = format.symmetric ? (lowest + highest) / 2 : lowest - low / exact;
  const zeroPoint = isUsable ? roundHalfToEven(middle) : 0;
  const scale = isUsable ? roundTo(Math.fround(exact), type) : 1;
  const codes = channel.map((value) =>
    Math.min(highest, Math.max(lowest, roundHalfToEven(Math.fround(value / scale)) + zeroPoint)),
  );
  return { scale, zeroPoint, codes };
}

/** What a task has to write: quantized values, scales and zero points. */
function wantedOutputs({ task, values }: ReturnType<typeof createTask>) {
  const { matrices, channels, inner, elements } = task;
  const codes = new Int8Array(elements);
  const scales: number[] = [];
  const zeroPoints: number[] = [];
  const size = elements / matrices;
  const placesByChannel = Array.from({ length: matrices * channels }, (): number[] => []);
  for (let at = 0; at < elements; at++) {
    const channel = Math.floor((at % size) / inner) % channels;
    placesByChannel[Math.floor(at / size) * channels + channel]?.push(at);
  }
  for (const places of placesByChannel) {
    const content = places.map((at) => Number(values[at]));
    const wanted = quantizePlainly(content, task.format, task.scaleType);
    scales.push(wanted.scale);
    zeroPoints.push(wanted.zeroPoint);
    for (const [order, at] of places.entries()) {
      codes[at] = wanted.codes[order] ?? 0;
    }
  }
  return { codes: [...codes], scales, zeroPoints };
}

test("an affine task quantizes each channel of each matrix, however small its tiles are", async () => {
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      const created = createTask(one);
      const wanted = wantedOutputs(created);
      for (const limits of [undefined, smallLimits]) {
        const { result, outputs } = await runTask(created.task, created.lengths, limits);
        const [codes = Buffer.alloc(0), scales = Buffer.alloc(0), points] = outputs;
        assert.equal(result.rejection, undefined);
        assert.deepEqual([...decodeFloats(scales, one.type)], wanted.scales);
        assert.deepEqual([...new Int8Array(codes)], wanted.codes);
        if (!one.format.symmetric) {
          assert.deepEqual([...new Int8Array(points ?? [])], wanted.zeroPoints);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("an affine task rejects a weight with a value that is not finite in its last matrix", async () => {
  const created = createTask({
    matrices: 3,
    outer: 2,
    channels: 5,
    inner: 7,
    format: { type: "int8", symmetric: true, reduceRange: false },
    type: "bfloat16",
    seed: 1,
  });
  const values = created.values.with(3 * 70 - 1, Infinity);
  const task = { ...created.task, ...sourceFields(values, "bfloat16") };
  const { result } = await runTask(task, created.lengths);
  assert.match(result.rejection ?? "", /not finite/);
});
