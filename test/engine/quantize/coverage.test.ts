import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { z } from "zod";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import type { CompressionReport } from "../../../src/engine/compression-report.ts";
import {
  addErrors,
  emptyErrorSums,
  errorMetrics,
} from "../../../src/engine/evaluate/error-metrics.ts";
import type { Sample, TensorData } from "../../../src/engine/runtime/tensor-data.ts";
import { pythonMissing, runPythonFile } from "../../support/python.ts";
import { findRunnableSample, runModel } from "../../support/run-pipeline.ts";
import { compress, makeFolder } from "./compress.ts";

interface Scheme {
  readonly recipe: PartialRecipe;
  /** Least SQNR of outputs, dB. */
  readonly leastSqnrDb: number;
  /** Most bits of a weight's element, with its share of scales. */
  readonly bits: number;
}

const schemes = {
  "int8-weight": { recipe: { scheme: "int8-weight" }, leastSqnrDb: 32, bits: 8.5 },
  "int8-dynamic": {
    recipe: { scheme: "int8-dynamic", fallback: "int8-weight" },
    leastSqnrDb: 29,
    bits: 8.5,
  },
  "int4-weight in contrib operators": {
    recipe: { scheme: "int4-weight", operators: "contrib", fallback: "int8-weight" },
    leastSqnrDb: 12,
    bits: 5,
  },
  "int4-weight in standard operators": {
    recipe: { scheme: "int4-weight", fallback: "int8-weight" },
    leastSqnrDb: 12,
    bits: 5,
  },
} as const satisfies Record<string, Scheme>;
type SchemeName = keyof typeof schemes;

/** Share of the bytes of weights that must be quantized. */
const leastShare = 0.98;

interface CoverageModel {
  /** Share of the bytes that must be quantized, where some of them never are. */
  readonly share?: number;
  /** Bits of an element in the original; 32 without it. */
  readonly bits?: 16;
  /** Schemes of 4 bits in which the fallback may hold the weights. */
  readonly inEightBits?: readonly SchemeName[];
}

const [int8, dynamic, contrib, standard] = [
  "int8-weight",
  "int8-dynamic",
  "int4-weight in contrib operators",
  "int4-weight in standard operators",
] as const;
const int4 = [contrib, standard] as const;
const every = [int8, dynamic, contrib, standard] as const;

/** Models of build_coverage_models.py. */
const models: Readonly<Record<string, CoverageModel>> = {
  "tied-transpose": { inEightBits: [standard] },
  "tied-transpose-large": { inEightBits: [standard] },
  "tied-gemm": { inEightBits: [standard] },
  "tied-gemm-large": { inEightBits: [standard] },
  "tied-identity-cast": { bits: 16, inEightBits: [standard] },
  transposed: {},
  "transposed-large": {},
  "torch-export": {},
  "torch-export-large": {},
  "torch-export-functions": {},
  "torch-export-functions-large": {},
  sliced: {},
  split: {},
  "lstm-gates": { inEightBits: int4 },
  "batched-matmul": {},
  "experts-gathered": { inEightBits: [standard] },
  "experts-gathered-large": { inEightBits: [standard] },
  "experts-unrolled": {},
  "experts-unrolled-large": {},
  moe: { inEightBits: int4 },
  "moe-large": { inEightBits: int4 },
  attention: { inEightBits: int4 },
  "embed-layer-normalization": { inEightBits: int4 },
  "fused-gemm": {},
  "fused-matmul": {},
  "fused-conv": { inEightBits: int4 },
  fp16: { bits: 16, inEightBits: [standard] },
  bf16: { bits: 16, inEightBits: [standard] },
  "sparse-initializer": { share: 0.4 },
  "initializer-input": {},
};

let folder = "";
let weightBytes: Record<string, number> = {};
before(async () => {
  if (pythonMissing !== false) return;
  folder = await mkdtemp(join(tmpdir(), "coverage-"));
  const printed = await runPythonFile("build_coverage_models.py", [folder, ...Object.keys(models)]);
  weightBytes = z.record(z.string(), z.int()).parse(JSON.parse(printed));
});
after(async () => {
  if (folder !== "") await rm(folder, { recursive: true });
});

for (const [name, model] of Object.entries(models)) {
  const { bits = 32, inEightBits = [], share: least = leastShare } = model;
  const path = () => join(folder, `${name}.onnx`);
  const original = runOnce(path);
  test(`${name} runs`, { skip: pythonMissing }, async () => {
    const { outputs } = await original();
    assert.ok(outputs.every((output) => readFloats(output).some((value) => value !== 0)));
  });
  for (const scheme of every) {
    const { recipe, leastSqnrDb } = schemes[scheme];
    const resultBits = schemes[inEightBits.includes(scheme) ? int8 : scheme].bits;
    test(`${scheme} covers ${name}`, { skip: pythonMissing }, async (t) => {
      await using result = await makeFolder();
      const report = await compress(path(), result.path, recipe);
      const allBytes = weightBytes[name] ?? 0;
      const share = quantizedShare(report, allBytes);
      const percent = (100 * share).toFixed(2);
      t.diagnostic(`${percent} % of ${(allBytes / 1e6).toFixed(1)} MB of weights are quantized`);
      assert.ok(share >= least, `${share} of the weight bytes are quantized`);
      const weightBits = least * resultBits + (1 - least) * bits;
      const listedBytes = Math.max(allBytes, sumBytes(report.weights));
      const most = (listedBytes * weightBits) / bits + mostGraphBytes(report, allBytes);
      assert.ok(report.resultBytes <= most, `${report.resultBytes} bytes, and may have ${most}`);
      const { sample, outputs } = await original();
      const changed = await runModel(join(result.path, "model.onnx"), { sample, optimize: true });
      const sqnrDb = leastSqnr(outputs, changed);
      assert.ok(sqnrDb >= leastSqnrDb, `${sqnrDb} dB`);
    });
  }
}

interface OriginalRun {
  readonly sample: Sample;
  readonly outputs: readonly TensorData[];
}

function runOnce(path: () => string): () => Promise<OriginalRun> {
  let running: Promise<OriginalRun> | undefined;
  const run = async () => {
    const sample = await findRunnableSample(path());
    return { sample, outputs: await runModel(path(), { sample, optimize: true }) };
  };
  return () => (running ??= run());
}

/** Of all weights that are large enough, whether the report lists them or not. */
function quantizedShare({ weights }: CompressionReport, allBytes: number): number {
  const elements = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);
  const large = weights.filter(({ shape }) => elements(shape) >= 256);
  const quantized = large.filter(({ form }) => form !== null);
  return sumBytes(quantized) / Math.max(sumBytes(large), allBytes);
}

/** What a result may have besides weights: nodes of both graphs, and weights too small to quantize. */
function mostGraphBytes({ originalBytes }: CompressionReport, allBytes: number): number {
  return Math.min(3 * (originalBytes - allBytes) + 4000, 40_000);
}

function sumBytes(weights: CompressionReport["weights"]): number {
  return weights.reduce((sum, { originalBytes }) => sum + originalBytes, 0);
}

function leastSqnr(outputs: readonly TensorData[], changed: readonly TensorData[]): number {
  const levels = outputs.map((output, index) => {
    const other = changed[index];
    assert.deepEqual([other?.name, other?.shape], [output.name, output.shape]);
    const sums = emptyErrorSums();
    addErrors(sums, readFloats(output), other === undefined ? [] : readFloats(other));
    return errorMetrics(sums).sqnrDb;
  });
  return Math.min(...levels);
}

function readFloats({ bytes }: TensorData): Float32Array {
  return new Float32Array(bytes.slice().buffer);
}
