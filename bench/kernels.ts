import { emptyErrorSums } from "../src/engine/evaluate/error-metrics.ts";
import { createMatMulNBitsBlocks } from "../src/engine/quantize/kernels/block-format.ts";
import {
  createChannelRanges,
  widenChannelRanges,
} from "../src/engine/quantize/kernels/channel-ranges.ts";
import { float32ToFloat16 } from "../src/engine/quantize/kernels/convert-floats.ts";
import { affineParameters } from "../src/engine/quantize/kernels/affine-parameters.ts";
import { quantizeBlocks } from "../src/engine/quantize/kernels/quantize-blocks.ts";
import { quantizeLinear } from "../src/engine/quantize/kernels/quantize-linear.ts";
import { runPython } from "../test/support/python.ts";
import { measureCpuSeconds } from "./measure-cpu-seconds.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * A matrix of 64 MiB, as often as makes 1 GiB; all is in memory already. Processor time and not
 * time on the clock: it depends less on other processes, and ONNX Runtime's block quantizers use all
 * cores where ours uses one.
 */
const k = 2048;
const n = 8192;
const matrices = 16;
const tileRows = 128;

const kernels = {
  "int4 blocks of 32, asymmetric": () => blocks(4),
  "int8 blocks of 32, asymmetric": () => blocks(8),
  "int8 a column, symmetric": columns,
  "half precision": halves,
} as const;
/** How many times faster than the peer each must be. */
const factors = [3, 3, 10, 1];

const peer = `
import time
import numpy as np
import onnx
import onnxruntime.capi._pybind_state as native
from onnxruntime.quantization.quant_utils import quantize_data
k, n, matrices = ${k}, ${n}, ${matrices}
weight = np.random.default_rng(1).standard_normal((k, n), dtype=np.float32)
def blocks(bits, quantize):
    codes = np.zeros((n, k // 32, 4 * bits), np.uint8)
    points = np.zeros((n, k // 32 * bits // 8), np.uint8)
    scales = np.zeros((n, k // 32), np.float32)
    quantize(codes, weight, scales, points, 32, n, k, False)
def columns():
    int8 = onnx.TensorProto.INT8
    parts = [quantize_data(weight[:, column], int8, True)[2] for column in range(n)]
    np.concatenate([part.reshape(k, 1) for part in parts], 1)
for job, times in [
    (lambda: blocks(4, native.quantize_matmul_4bits), matrices),
    (lambda: blocks(8, native.quantize_matmul_8bits), matrices),
    (columns, 2),
    (lambda: weight.astype(np.float16), matrices),
]:
    job()
    started = time.process_time()
    for _ in range(times):
        job()
    print((time.process_time() - started) * matrices / times)
`;

function* tiles(
  values: Float32Array,
): Generator<{ values: Float32Array; firstRow: number; start: number }> {
  for (let row = 0; row < k; row += tileRows) {
    yield { values: values.subarray(row * n, (row + tileRows) * n), firstRow: row, start: row * n };
  }
}

function blocks(bits: 4 | 8): (values: Float32Array) => void {
  const matrix = {
    shape: { order: "kn", k, n },
    format: { bits, blockSize: 32, symmetric: false },
  } as const;
  return (values) => {
    const into = createMatMulNBitsBlocks(matrix.shape, matrix.format);
    for (const tile of tiles(values)) quantizeBlocks(tile, matrix, into, emptyErrorSums());
  };
}

function columns(): (values: Float32Array) => void {
  const layout = { channels: n, inner: 1 };
  const into = new Int8Array(tileRows * n);
  return (values) => {
    const ranges = createChannelRanges(layout);
    for (const tile of tiles(values)) widenChannelRanges(tile, layout, ranges);
    const parameters = affineParameters(ranges, {
      type: "int8",
      symmetric: true,
      reduceRange: false,
    });
    for (const tile of tiles(values))
      quantizeLinear(tile, { layout, parameters }, into, emptyErrorSums());
  };
}

function halves(): (values: Float32Array) => void {
  const into = new Uint16Array(tileRows * n);
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  return (values) => {
    for (const tile of tiles(values)) float32ToFloat16(tile.values, into, losses, emptyErrorSums());
  };
}

const peers = (await runPython(peer)).trim().split("\n").map(Number);
const values = new Float32Array(k * n);
for (let index = 0; index < values.length; index++)
  values[index] = Math.random() + Math.random() - 1;
const rows = Object.entries(kernels).map(([name, makeJob], index): BenchRow => {
  const kernel = makeJob();
  const seconds = measureCpuSeconds(() => kernel(values), matrices);
  const [theirs, factor] = [Number(peers[index]), Number(factors[index])];
  const met = seconds <= theirs / factor;
  return {
    what: `1 GiB to ${name}`,
    unit: "CPU s",
    ours: seconds,
    peer: theirs,
    bar: `ours <= peer / ${factor}`,
    met,
  };
});
await reportBench("kernels", rows);
