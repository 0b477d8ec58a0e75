import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { addErrors, emptyErrorSums } from "../../../../src/engine/evaluate/error-metrics.ts";
import type { ErrorSums } from "../../../../src/engine/quantize/kernels/error-sums.ts";
import type { ChannelLayout } from "../../../../src/engine/quantize/kernels/channel-layout.ts";
import {
  type ChannelRanges,
  createChannelRanges,
  widenChannelRanges,
} from "../../../../src/engine/quantize/kernels/channel-ranges.ts";
import {
  type AffineParameters,
  affineParameters,
  type AffineFormat,
} from "../../../../src/engine/quantize/kernels/affine-parameters.ts";
import { quantizeLinear } from "../../../../src/engine/quantize/kernels/quantize-linear.ts";
import { pythonMissing, runPython } from "../../../support/python.ts";
import { weightValues } from "./weight-values.ts";

interface Quantized extends AffineParameters {
  readonly ranges: ChannelRanges;
  readonly codes: Int8Array | Uint8Array;
  readonly sums: ErrorSums;
}

interface Tensor {
  readonly layout: ChannelLayout;
  readonly values: Float32Array;
}

/** Both passes, in tiles of `tileValues`. */
function quantize(
  { layout, values }: Tensor,
  format: AffineFormat,
  tileValues = values.length,
): Quantized {
  const ranges = createChannelRanges(layout);
  const tiles = Array.from({ length: Math.ceil(values.length / tileValues) }, (_, index) => {
    const start = index * tileValues;
    return { start, values: values.subarray(start, start + tileValues) };
  });
  for (const tile of tiles) widenChannelRanges(tile, layout, ranges);
  const parameters = affineParameters(ranges, format);
  const codes =
    format.type === "int8" ? new Int8Array(values.length) : new Uint8Array(values.length);
  const sums = emptyErrorSums();
  for (const tile of tiles) {
    const into = codes.subarray(tile.start, tile.start + tile.values.length);
    quantizeLinear(tile, { layout, parameters }, into, sums);
  }
  return { ...parameters, ranges, codes, sums };
}

function channelIndex({ channels, inner }: ChannelLayout, at: number): number {
  return Math.floor(at / inner) % channels;
}

const tensors: fc.Arbitrary<Tensor> = fc
  .record({
    outer: fc.integer({ min: 1, max: 12 }),
    channels: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1000, max: 1100 })),
    inner: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(64, 147, 500)),
    seed: fc.integer(),
  })
  .filter(({ outer, channels, inner }) => outer * channels * inner < 100_000)
  .map(({ outer, channels, inner, seed }) => ({
    layout: { channels, inner },
    values: weightValues(outer * channels * inner, seed),
  }));

const formats: fc.Arbitrary<AffineFormat> = fc.record({
  type: fc.constantFrom("int8", "uint8"),
  symmetric: fc.boolean(),
  reduceRange: fc.boolean(),
});

test("widenChannelRanges() finds each channel's least and greatest value", () => {
  fc.assert(
    fc.property(tensors, ({ layout, values }) => {
      const wanted = createChannelRanges(layout);
      for (const [at, value] of values.entries()) {
        const channel = channelIndex(layout, at);
        wanted.min[channel] = Math.min(Number(wanted.min[channel]), value);
        wanted.max[channel] = Math.max(Number(wanted.max[channel]), value);
      }
      const ranges = createChannelRanges(layout);
      widenChannelRanges({ values, start: 0 }, layout, ranges);
      assert.deepEqual(ranges, wanted);
    }),
    { numRuns: 60 },
  );
});

test("widenChannelRanges() notices a value that is not finite wherever it stands", () => {
  for (const layout of [
    { channels: 1, inner: 1 },
    { channels: 7, inner: 1 },
    { channels: 7, inner: 43 },
  ])
    for (const bad of [NaN, Infinity, -Infinity])
      for (const at of [0, 1, 300, 602]) {
        const values = new Float32Array(603).fill(1);
        values[at] = bad;
        const ranges = createChannelRanges(layout);
        widenChannelRanges({ values, start: 0 }, layout, ranges);
        assert.equal(ranges.notFinite, true);
      }
});

test("quantizeLinear() stays within half a scale of every value and keeps zero", () => {
  fc.assert(
    fc.property(tensors, formats, ({ layout, values }, format) => {
      const { codes, scales, zeroPoints, lowest, highest } = quantize({ layout, values }, format);
      // If the middle of the codes is not a code, the symmetric zero point is half a code off, and
      // the last code clips by as much.
      const clipped = format.symmetric && format.type === "uint8" ? 0.5 : 0;
      for (const [at, value] of values.entries()) {
        const channel = channelIndex(layout, at);
        const scale = Number(scales[channel]);
        const code = Number(codes[at]);
        const back = (code - Number(zeroPoints[channel])) * scale;
        assert.ok(code >= lowest && code <= highest);
        assert.ok(
          Math.abs(back - value) <= scale * (0.5 + clipped + asymmetricClip(format)) * (1 + 1e-4),
        );
        if (value === 0) assert.equal(Math.abs(back), 0);
      }
    }),
    { numRuns: 60 },
  );
});

/**
 * A rounded zero point shifts the codes by up to half a code, so that the ends of the range may clip
 * by as much.
 */
function asymmetricClip({ symmetric }: AffineFormat): number {
  return symmetric ? 0 : 0.5;
}

test("quantizeLinear() measures the error that dequantizing shows", () => {
  fc.assert(
    fc.property(tensors, formats, ({ layout, values }, format) => {
      const { codes, scales, zeroPoints, sums } = quantize({ layout, values }, format);
      const back = Float64Array.from(values, (_, at) => {
        const channel = channelIndex(layout, at);
        return (Number(codes[at]) - Number(zeroPoints[channel])) * Number(scales[channel]);
      });
      const wanted = emptyErrorSums();
      addErrors(wanted, values, back);
      const rounding = 1e-6 * Math.sqrt(wanted.signal);
      for (const key of ["signal", "noise", "changed", "product"] as const) {
        assert.ok(Math.abs(sums[key] - wanted[key]) <= 1e-3 * wanted[key] + rounding ** 2, key);
      }
      assert.ok(
        Math.abs(sums.maxAbsoluteError - wanted.maxAbsoluteError) <=
          1e-3 * wanted.maxAbsoluteError + rounding,
      );
    }),
    { numRuns: 60 },
  );
});

test("quantizeLinear() gives the same codes whatever the tiles", () => {
  fc.assert(
    fc.property(
      tensors,
      formats,
      fc.integer({ min: 900, max: 3000 }),
      (tensor, format, tileValues) => {
        const whole = quantize(tensor, format);
        const tiled = quantize(tensor, format, tileValues);
        assert.deepEqual(tiled.codes, whole.codes);
        assert.deepEqual(tiled.scales, whole.scales);
        assert.deepEqual(tiled.ranges, whole.ranges);
      },
    ),
    { numRuns: 60 },
  );
});

test("quantizeLinear() gives scale 1 and code 0 to a channel of zeros", () => {
  const layout = { channels: 2, inner: 20 };
  const values = new Float32Array(40).fill(1, 20);
  const { scales, zeroPoints, codes } = quantize(
    { layout, values },
    { type: "int8", symmetric: true, reduceRange: false },
  );
  assert.deepEqual([...scales], [1, Math.fround(2 / 254)]);
  assert.deepEqual([...zeroPoints], [0, 0]);
  assert.deepEqual([codes[0], codes[39]], [0, 127]);
});

const program = `
import json, os, sys
import numpy as np
import onnx
from onnxruntime.quantization.quant_utils import quantize_data
folder = sys.argv[1]
for index, case in enumerate(json.load(open(os.path.join(folder, "cases.json")))):
    weight = np.fromfile(os.path.join(folder, f"{index}.bin"), dtype=np.float32).reshape(-1, case["channels"], case["inner"])
    kind = onnx.TensorProto.INT8 if case["type"] == "int8" else onnx.TensorProto.UINT8
    codes = np.zeros(weight.shape, np.int8 if case["type"] == "int8" else np.uint8)
    scales, points = [], []
    for channel in range(case["channels"]):
        point, scale, data = quantize_data(weight[:, channel].ravel(), kind, case["symmetric"], case["reduceRange"])
        codes[:, channel] = np.asarray(data).reshape(weight[:, channel].shape)
        scales.append(scale)
        points.append(point)
    with open(os.path.join(folder, f"{index}.out"), "wb") as out:
        out.write(codes.tobytes() + np.array(scales, np.float32).tobytes() + np.array(points).astype(codes.dtype).tobytes())
`;

test(
  "quantizeLinear() gives ONNX Runtime's own codes, scales and zero points",
  { skip: pythonMissing },
  async () => {
    const layouts = [
      [1, 1, 999],
      [300, 40, 1],
      [1, 40, 147],
      [3, 20, 9],
    ] as const;
    const cases = layouts.flatMap(([outer, channels, inner]) =>
      (["int8", "uint8"] as const).flatMap((type) =>
        [true, false].flatMap((symmetric) =>
          // With a rounded zero point, ONNX Runtime's codes can leave the reduced range by one;
          // ours stay inside.
          (symmetric && type === "int8" ? [true, false] : [false]).map((reduceRange) => ({
            layout: { channels, inner },
            format: { type, symmetric, reduceRange },
            values: weightValues(outer * channels * inner, outer),
          })),
        ),
      ),
    );
    const folder = await mkdtemp(join(tmpdir(), "linear-"));
    try {
      const described = cases.map(({ layout, format }) => ({ ...layout, ...format }));
      await writeFile(join(folder, "cases.json"), JSON.stringify(described));
      for (const [index, { values }] of cases.entries())
        await writeFile(join(folder, `${index}.bin`), values);
      await runPython(program, [folder]);
      for (const [index, { layout, format, values }] of cases.entries()) {
        const { codes, scales, zeroPoints } = quantize({ layout, values }, format);
        const parts = [codes, scales, zeroPoints].map((part) => Buffer.from(part.buffer));
        const wanted = await readFile(join(folder, `${index}.out`));
        assert.ok(
          Buffer.concat(parts).equals(wanted),
          `Other codes for ${JSON.stringify({ ...layout, ...format })}`,
        );
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
