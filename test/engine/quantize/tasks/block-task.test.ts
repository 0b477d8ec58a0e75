import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { emptyErrorSums } from "../../../../src/engine/evaluate/error-metrics.ts";
import {
  createDequantizeLinearBlocks,
  createGatherBlocks,
  createMatMulNBitsBlocks,
  type QuantizedBlocks,
} from "../../../../src/engine/quantize/kernels/block-format.ts";
import { quantizeBlocks } from "../../../../src/engine/quantize/kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "../../../../src/engine/quantize/kernels/quantize-linear-blocks.ts";
import type { BlockTask, FloatType } from "../../../../src/engine/quantize/tasks/weight-task.ts";
import { weightValues } from "../kernels/weight-values.ts";
import { decodeFloats, encodeFloats, runTask, smallLimits, sourceFields } from "./run-task.ts";

interface Case extends Pick<BlockTask, "matrices" | "layout" | "format"> {
  readonly order: "kn" | "nk";
  readonly k: number;
  readonly n: number;
  readonly type: FloatType;
  readonly seed: number;
}

const size = fc.oneof(fc.constantFrom(1, 2, 3), fc.integer({ min: 1, max: 90 }));
const depth = fc.oneof(size, fc.integer({ min: 200, max: 1200 }));
const common = {
  matrices: fc.integer({ min: 1, max: 3 }),
  format: fc.record({
    bits: fc.constantFrom(4 as const, 8 as const),
    blockSize: fc.constantFrom(16, 32, 64, 128, 256),
    symmetric: fc.boolean(),
  }),
  k: depth,
  n: fc.oneof(size, fc.integer({ min: 500, max: 1100 })),
  type: fc.constantFrom<FloatType>("float32", "float16", "bfloat16"),
  seed: fc.integer(),
};
const cases = fc
  .oneof(
    fc.record({
      ...common,
      layout: fc.constant("matmul" as const),
      order: fc.constant("kn" as const),
    }),
    fc.record({
      ...common,
      layout: fc.constant("columns" as const),
      order: fc.constant("kn" as const),
    }),
    fc.record({
      ...common,
      layout: fc.constantFrom("matmul" as const, "gather" as const, "rows" as const),
      order: fc.constant("nk" as const),
    }),
  )
  .filter(({ k, n, matrices }) => k * n * matrices < 150_000);

function bytesWithin({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Quantized values, scales and zero points of one matrix, all of it in memory. */
function quantizeWhole({ layout, order, k, n, format }: Case, values: Float32Array) {
  const create =
    layout === "columns"
      ? createDequantizeLinearBlocks
      : layout === "matmul"
        ? createMatMulNBitsBlocks
        : createGatherBlocks;
  const quantize = layout === "columns" ? quantizeLinearBlocks : quantizeBlocks;
  const matrix = { shape: { order, k, n }, format };
  const into = create(matrix.shape, format);
  quantize({ values, firstRow: 0 }, matrix, into, emptyErrorSums());
  if (layout === "rows" && format.symmetric) {
    const flip = format.bits === 4 ? 0x88 : 0x80;
    for (const [at, byte] of into.quantizedValues.entries()) into.quantizedValues[at] = byte ^ flip;
  }
  return into;
}

function halfBytes(bytes: Uint8Array): number[] {
  return [...bytes].flatMap((byte) => [byte & 15, byte >> 4]);
}

/** Puts arrays of 4-bit elements one behind the other, without the spare half byte of each. */
function joinPacked(parts: readonly Uint8Array[], elements: number): Buffer {
  const halves = parts.flatMap((part) => halfBytes(part).slice(0, elements));
  return Buffer.from(
    Array.from(
      { length: Math.ceil(halves.length / 2) },
      (_, at) => Number(halves[at * 2]) | (Number(halves[at * 2 + 1] ?? 0) << 4),
    ),
  );
}

function wantedOutputs(one: Case, values: Float32Array): Buffer[] {
  const { layout, k, n, format, matrices, type } = one;
  const parts = Array.from({ length: matrices }, (_, matrix) =>
    quantizeWhole(one, values.subarray(matrix * k * n, (matrix + 1) * k * n)),
  );
  const packed = layout === "columns" && format.bits === 4;
  const blocks = Math.ceil(k / format.blockSize);
  const join = (key: keyof QuantizedBlocks, elements: number) => {
    const arrays = parts.map((part) =>
      key === "scales" ? bytesWithin(encodeScales(part.scales, type)) : part[key],
    );
    const isPacked = packed && key !== "scales";
    const bytes = arrays.map((array) => bytesWithin(array));
    return isPacked ? joinPacked(bytes, elements) : Buffer.concat(bytes);
  };
  const zeroPoints = format.symmetric ? [] : [join("zeroPoints", blocks * n)];
  return [join("quantizedValues", k * n), join("scales", 0), ...zeroPoints];
}

function encodeScales(scales: Float32Array, type: FloatType): ArrayBufferView {
  if (type !== "bfloat16") return encodeFloats(scales, type);
  const words = new Uint32Array(scales.slice().buffer);
  return Uint16Array.from(words, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16);
}

test("a block task quantizes each matrix as if all of it were in memory, whatever its shape", async () => {
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      const { matrices, layout, format, order, k, n, type, seed } = one;
      const drawn = weightValues(matrices * k * n, seed);
      const values = decodeFloats(bytesWithin(encodeFloats(drawn, type)), type);
      const task: BlockTask = {
        kind: "blocks",
        ...sourceFields(values, type),
        matrices,
        layout,
        shape: { order, k, n },
        format,
        scaleType: type,
        outputs: { quantizedValues: 0, scales: 1, zeroPoints: format.symmetric ? undefined : 2 },
      };
      const wanted = wantedOutputs(one, values);
      const lengths = wanted.map(({ length }) => length);
      for (const limits of [undefined, smallLimits]) {
        const { result, outputs } = await runTask(task, lengths, limits);
        assert.equal(result.rejection, undefined);
        assert.deepEqual(outputs, wanted);
      }
    }),
    { numRuns: 150 },
  );
});
