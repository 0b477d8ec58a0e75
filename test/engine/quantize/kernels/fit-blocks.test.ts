import assert from "node:assert/strict";
import { test } from "node:test";
import { createNormal, createRandom } from "../../../../src/engine/samples/generate-sample.ts";
import {
  createFittedBlocks,
  fitBlocks,
} from "../../../../src/engine/quantize/kernels/fit-blocks.ts";
import { findShifts } from "../../../../src/engine/quantize/kernels/find-shifts.ts";
import { factorMoments } from "../../../../src/engine/quantize/kernels/input-factor.ts";
import { MatrixMemory } from "../../../../src/engine/quantize/kernels/second-order.ts";

const [inputs, outputs, rows] = [48, 20, 300];
const damping = 0.01;
const normal = createNormal(createRandom(5));
const mixing = Array.from({ length: inputs * inputs }, normal);
const activations = Float32Array.from(
  Array.from({ length: rows }, () => {
    const causes = Array.from({ length: inputs }, (_, index) => normal() / (1 + index));
    return Array.from({ length: inputs }, (_, input) =>
      causes.reduce((sum, cause, at) => sum + cause * Number(mixing[input * inputs + at]), 0),
    );
  }).flat(),
);
const values = Float32Array.from({ length: inputs * outputs }, normal);
const format = { bits: 4, blockSize: 16, symmetric: false } as const;

/** Sums of products of the inputs with one another and with errors beside them, over all rows. */
function sumMoments(errors: Float32Array, count: number): Float32Array {
  const sums = new Float64Array(inputs * (inputs + count));
  for (let row = 0; row < rows; row++) {
    const columns = [
      ...activations.subarray(row * inputs, (row + 1) * inputs),
      ...errors.subarray(row * count, (row + 1) * count),
    ];
    for (const [first, input] of columns.slice(0, inputs).entries()) {
      for (const [second, other] of columns.entries()) {
        const index = first * columns.length + second;
        sums[index] = Number(sums[index]) + input * other;
      }
    }
  }
  return Float32Array.from(sums);
}

/** The inverse of a symmetric positive definite matrix, by Gauss-Jordan elimination. */
function invert(matrix: readonly (readonly number[])[]): number[][] {
  const size = matrix.length;
  const work = matrix.map((row, index) => [
    ...row,
    ...Array.from({ length: size }, (_, column) => Number(column === index)),
  ]);
  for (let pivot = 0; pivot < size; pivot++) {
    const row = work[pivot] ?? [];
    const factor = Number(row[pivot]);
    const scaled = row.map((value) => value / factor);
    work[pivot] = scaled;
    for (let other = 0; other < size; other++) {
      const target = work[other] ?? [];
      const multiple = Number(target[pivot]);
      if (other === pivot) continue;
      work[other] = target.map((value, column) => value - multiple * Number(scaled[column]));
    }
  }
  return work.map((row) => row.slice(size));
}

/** Errors that the products' inputs have already, in the products: a row for each of the inputs. */
const inputErrors = Float32Array.from({ length: rows * outputs }, normal);

for (const hasErrors of [false, true]) {
  const whose = hasErrors ? "GPTAQ, with errors of the inputs" : "GPTQ";
  test(`Codes are those of ${whose}, as its paper has it with an inverse for each step`, () => {
    const memory = new MatrixMemory();
    const sums = hasErrors ? sumMoments(inputErrors, outputs) : sumMoments(inputErrors, 0);
    const pitch = inputs + (hasErrors ? outputs : 0);
    const factor = factorMoments(memory, { sums, pitch, inputs, rows, damping });
    assert.ok(factor);
    const fitted = createFittedBlocks(outputs, inputs, format);
    const range = { firstOutput: 0, outputs };
    const shifts = hasErrors
      ? findShifts(memory, factor, { sums, pitch, firstError: inputs }, range)
      : undefined;
    const part = { values, ...range, allOutputs: outputs, firstInput: 0, inputs, shifts };
    fitBlocks(memory, factor, { ...part, format }, fitted);

    // Products of different inputs count less, since they are known from few rows.
    const kept = 1 - (0.25 * inputs) / rows;
    const diagonal = Array.from({ length: inputs }, (_, at) => Number(sums[at * pitch + at]));
    const added = (damping * diagonal.reduce((sum, value) => sum + value, 0)) / inputs;
    const order = diagonal
      .map((_, at) => at)
      .toSorted((a, b) => (diagonal[b] ?? 0) - (diagonal[a] ?? 0));
    const hessian = (first: number, second: number) =>
      Number(sums[Math.min(first, second) * pitch + Math.max(first, second)]) *
        (first === second ? 1 : kept) +
      (first === second ? added : 0);
    const inverseOf = (rest: readonly number[]) =>
      invert(rest.map((first) => rest.map((second) => hessian(first, second))));
    const whole = inverseOf(diagonal.map((_, at) => at));
    let differing = 0;
    for (let output = 0; output < outputs; output++) {
      const row = Array.from({ length: inputs }, (_, input) =>
        Number(values[input * outputs + output]),
      );
      if (hasErrors) {
        for (const [input, products] of whole.entries()) {
          const change = products.map(
            (value, other) => value * Number(sums[other * pitch + inputs + output]),
          );
          row[input] = Number(row[input]) + change.reduce((sum, value) => sum + value, 0);
        }
      }
      for (let step = 0; step < inputs; step++) {
        const rest = order.slice(step);
        const inverse = inverseOf(rest);
        const input = Number(rest[0]);
        const block = Math.floor(input / 16) * outputs + output;
        const [scale, zero] = [Number(fitted.scales[block]), Number(fitted.zeroPoints[block])];
        const code = Math.min(15, Math.max(0, Math.round(Number(row[input]) / scale) + zero));
        differing += Number(code !== fitted.codes[input * outputs + output]);
        const error = (Number(row[input]) - (code - zero) * scale) / Number(inverse[0]?.[0]);
        for (const [at, other] of rest.entries()) {
          row[other] = Number(row[other]) - error * Number(inverse[0]?.[at]);
        }
      }
    }
    // A value can lie as good as halfway between two codes.
    assert.ok(differing <= 2, `${differing} of ${inputs * outputs} codes differ`);
  });
}

test("Moments that are not finite are found", () => {
  const sums = new Float32Array(16 * 16).fill(NaN);
  assert.equal(
    factorMoments(new MatrixMemory(), { sums, pitch: 16, inputs: 16, rows, damping }),
    undefined,
  );
});

test("Inputs that are always zero are rounded all the same", () => {
  const memory = new MatrixMemory();
  const factor = factorMoments(memory, {
    sums: new Float32Array(inputs * inputs),
    pitch: inputs,
    inputs,
    rows,
    damping,
  });
  assert.ok(factor);
  const fitted = createFittedBlocks(outputs, inputs, format);
  const part = { values, firstOutput: 0, outputs, allOutputs: outputs, firstInput: 0, inputs };
  fitBlocks(memory, factor, { ...part, format }, fitted);
  assert.ok(fitted.scales.every((scale) => scale > 0 && scale < 1));
});
