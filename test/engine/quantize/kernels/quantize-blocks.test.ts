import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addErrors, emptyErrorSums } from "../../../../src/engine/evaluate/error-metrics.ts";
import type { ErrorSums } from "../../../../src/engine/quantize/kernels/error-sums.ts";
import {
  type QuantizedBlocks,
  type BlockFormat,
  countBlocks,
  createMatMulNBitsBlocks,
  createGatherBlocks,
  createDequantizeLinearBlocks,
  type MatrixShape,
} from "../../../../src/engine/quantize/kernels/block-format.ts";
import { quantizeBlocks } from "../../../../src/engine/quantize/kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "../../../../src/engine/quantize/kernels/quantize-linear-blocks.ts";
import { flatten } from "./onnxruntime-blocks.ts";
import { weightValues } from "./weight-values.ts";

interface Matrix {
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
}

const matrices: fc.Arbitrary<Matrix> = fc.record({
  shape: fc.record({
    order: fc.constantFrom("kn", "nk"),
    k: fc.integer({ min: 1, max: 600 }),
    n: fc.integer({ min: 1, max: 70 }),
  }),
  format: fc.record({
    bits: fc.constantFrom(4, 8),
    blockSize: fc.constantFrom(16, 32, 64, 128, 256),
    symmetric: fc.boolean(),
  }),
});

function codeAt(codes: Uint8Array, index: number, bits: 4 | 8): number {
  return bits === 8 ? Number(codes[index]) : (Number(codes[index >> 1]) >> ((index & 1) * 4)) & 15;
}

/** What MatMulNBits takes the weight for, in the order that the values came in. */
function restored(
  { shape: { order, k, n }, format }: Matrix,
  { quantizedValues, scales, zeroPoints }: QuantizedBlocks,
): Float64Array {
  const { bits, blockSize, symmetric } = format;
  const blocks = countBlocks(k, format);
  const pointsPerRow = ((zeroPoints.length / n) * 8) / bits;
  return Float64Array.from({ length: k * n }, (_, at) => {
    const [input, output] =
      order === "kn" ? [Math.floor(at / n), at % n] : [at % k, Math.floor(at / k)];
    const block = Math.floor(input / blockSize);
    const code = codeAt(quantizedValues, output * blocks * blockSize + input, bits);
    const zero = symmetric
      ? 2 ** (bits - 1)
      : codeAt(zeroPoints, output * pointsPerRow + block, bits);
    return (code - zero) * Number(scales[output * blocks + block]);
  });
}

function quantize(
  matrix: Matrix,
  values: Float32Array,
): { codes: QuantizedBlocks; sums: ErrorSums } {
  const codes = createMatMulNBitsBlocks(matrix.shape, matrix.format);
  const sums = emptyErrorSums();
  quantizeBlocks({ values, firstRow: 0 }, matrix, codes, sums);
  return { codes, sums };
}

/**
 * Sums in single precision, of values in units of the scale: a weight that is exact shows the error
 * of that arithmetic.
 */
function assertNear(sums: ErrorSums, wanted: ErrorSums): void {
  const rounding = 1e-6 * Math.sqrt(wanted.signal);
  for (const key of ["signal", "noise", "changed", "product"] as const) {
    const bound = 1e-4 * wanted[key] + (2 * Math.sqrt(wanted[key]) + rounding) * rounding;
    assert.ok(
      Math.abs(sums[key] - wanted[key]) <= bound,
      `${key} ${sums[key]}, not ${wanted[key]}`,
    );
  }
  assert.ok(
    Math.abs(sums.maxAbsoluteError - wanted.maxAbsoluteError) <=
      1e-3 * wanted.maxAbsoluteError + rounding,
  );
}

test("quantizeBlocks() stays within a scale of every value, and within half of it where nothing is clipped", () => {
  fc.assert(
    fc.property(matrices, fc.integer(), (matrix, seed) => {
      const { k, n, order } = matrix.shape;
      const { blockSize, symmetric } = matrix.format;
      const values = weightValues(k * n, seed);
      const { codes } = quantize(matrix, values);
      const back = restored(matrix, codes);
      const blocks = countBlocks(k, matrix.format);
      for (const [at, value] of values.entries()) {
        const [input, output] =
          order === "kn" ? [Math.floor(at / n), at % n] : [at % k, Math.floor(at / k)];
        const scale = Math.abs(
          Number(codes.scales[output * blocks + Math.floor(input / blockSize)]),
        );
        const bound = scale * (symmetric ? 1 : 0.5) * (1 + 1e-4);
        assert.ok(
          Math.abs(Number(back[at]) - value) <= bound,
          `${value} became ${back[at]} with scale ${scale}`,
        );
        if (value === 0) assert.equal(Math.abs(Number(back[at])), 0);
      }
    }),
    { numRuns: 60 },
  );
});

test("quantizeBlocks() measures the error that dequantizing shows", () => {
  fc.assert(
    fc.property(matrices, fc.integer(), (matrix, seed) => {
      const values = weightValues(matrix.shape.k * matrix.shape.n, seed);
      const { codes, sums } = quantize(matrix, values);
      const wanted = emptyErrorSums();
      addErrors(wanted, values, restored(matrix, codes));
      assertNear(sums, wanted);
      assert.equal(sums.notFinite, false);
    }),
    { numRuns: 60 },
  );
});

test("quantizeBlocks() gives the same bytes whatever the tiles", () => {
  fc.assert(
    fc.property(matrices, fc.integer({ min: 1, max: 9 }), (matrix, step) => {
      const { order, k, n } = matrix.shape;
      const values = weightValues(k * n, step);
      const [rows, width, rowsAtOnce] =
        order === "kn" ? [k, n, step * 2 * matrix.format.blockSize] : [n, k, step];
      const tiled = createMatMulNBitsBlocks(matrix.shape, matrix.format);
      for (let row = 0; row < rows; row += rowsAtOnce) {
        const tile = {
          values: values.subarray(row * width, (row + rowsAtOnce) * width),
          firstRow: row,
        };
        quantizeBlocks(tile, matrix, tiled, emptyErrorSums());
      }
      assert.deepEqual(flatten(tiled), flatten(quantize(matrix, values).codes));
    }),
    { numRuns: 60 },
  );
});

test("quantizeBlocks() gives the same bytes for a matrix and its transpose", () => {
  fc.assert(
    fc.property(matrices, ({ shape: { k, n }, format }) => {
      const values = weightValues(k * n, k);
      const turned = Float32Array.from({ length: k * n }, (_, at) =>
        Number(values[(at % k) * n + Math.floor(at / k)]),
      );
      const columns = quantize({ shape: { order: "kn", k, n }, format }, values);
      const rows = quantize({ shape: { order: "nk", k, n }, format }, turned);
      assert.deepEqual(flatten(rows.codes), flatten(columns.codes));
    }),
    { numRuns: 60 },
  );
});

test("quantizeBlocks() takes many rows that are far shorter than a block", () => {
  const format = { bits: 8, blockSize: 256, symmetric: false } as const;
  for (const [k, n] of [
    [1, 40_000],
    [3, 5000],
  ] as const) {
    const values = weightValues(k * n);
    const turned = Float32Array.from(values, (_, at) =>
      Number(values[(at % k) * n + Math.floor(at / k)]),
    );
    const columns = quantize({ shape: { order: "kn", k, n }, format }, values);
    const rows = quantize({ shape: { order: "nk", k, n }, format }, turned);
    assert.deepEqual(flatten(rows.codes), flatten(columns.codes));
  }
});

test("quantizeBlocks() ends an embedding's rows of codes with the row", () => {
  const format = { bits: 4, blockSize: 32, symmetric: false } as const;
  const shape = { order: "nk", k: 83, n: 6 } as const;
  const values = weightValues(shape.k * shape.n);
  const packed = createGatherBlocks(shape, format);
  quantizeBlocks({ values, firstRow: 0 }, { shape, format }, packed, emptyErrorSums());
  const { codes } = quantize({ shape, format }, values);
  assert.equal(packed.quantizedValues.length, 6 * 42);
  for (let row = 0; row < shape.n; row++) {
    assert.deepEqual(
      packed.quantizedValues.subarray(row * 42, row * 42 + 42),
      codes.quantizedValues.subarray(row * 48, row * 48 + 42),
    );
  }
  assert.deepEqual(packed.scales, codes.scales);
});

test("quantizeLinearBlocks() rounds to the codes of quantizeBlocks(), tile by tile", () => {
  fc.assert(
    fc.property(matrices, fc.integer({ min: 1, max: 3 }), ({ shape: { k, n }, format }, step) => {
      const { bits, blockSize, symmetric } = format;
      const matrix = { shape: { order: "kn", k, n } as const, format };
      const values = weightValues(k * n, step);
      const linear = createDequantizeLinearBlocks(matrix.shape, format);
      const rowsAtOnce = step * 2 * blockSize;
      const sums = emptyErrorSums();
      for (let row = 0; row < k; row += rowsAtOnce) {
        const tile = { values: values.subarray(row * n, (row + rowsAtOnce) * n), firstRow: row };
        quantizeLinearBlocks(tile, matrix, linear, sums);
      }
      const { codes } = quantize(matrix, values);
      const blocks = countBlocks(k, format);
      const middle = symmetric ? 2 ** (bits - 1) : 0;
      for (let at = 0; at < k * n; at++) {
        const code = codeAt(
          codes.quantizedValues,
          (at % n) * blocks * blockSize + Math.floor(at / n),
          bits,
        );
        assert.equal(codeAt(linear.quantizedValues, at, bits), code ^ middle);
      }
      for (let at = 0; at < blocks * n; at++) {
        assert.equal(linear.scales[at], codes.scales[(at % n) * blocks + Math.floor(at / n)]);
      }
    }),
    { numRuns: 40 },
  );
});

for (const order of ["kn", "nk"] as const)
  for (const bad of [NaN, Infinity, -Infinity])
    test(`quantizeBlocks() marks a ${order} weight that holds ${bad}, wherever it stands`, () => {
      const shape = { order, k: 70, n: 5 };
      for (const at of [0, 1, 69, 174, 349])
        for (const symmetric of [true, false])
          for (const others of [0, 1e-42, 0.1]) {
            const values = new Float32Array(350).fill(others);
            values[at] = bad;
            const { sums } = quantize(
              { shape, format: { bits: 4, blockSize: 32, symmetric } },
              values,
            );
            assert.equal(sums.notFinite, true, `${at} ${symmetric} ${others}`);
          }
    });

test("quantizeBlocks() keeps weights that are next to nothing apart from those that are not finite", () => {
  const format = { bits: 4, blockSize: 16, symmetric: false } as const;
  const values = Float32Array.from({ length: 64 }, (_, index) => index * 1e-42);
  const { sums } = quantize({ shape: { order: "kn", k: 64, n: 1 }, format }, values);
  assert.equal(sums.notFinite, false);
  assert.ok(sums.noise < 1e-70);
});
