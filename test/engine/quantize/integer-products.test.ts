import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { Target } from "../../../src/contract/jobs/target.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import {
  AttributeProto_AttributeType as Attribute,
  TensorProto_DataType as DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { valgrindMissing } from "../../support/cluster/cluster-missing.ts";
import { pythonInterpreter, pythonMissing } from "../../support/python.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { fixedCandidates, measureSqnrDb } from "./candidates.ts";
import { compress, contribTarget, makeFolder, weightNamed } from "./compress.ts";

interface Product {
  readonly recipe?: PartialRecipe;
  readonly instructionSets?: Target["instructionSets"];
  readonly latency?: "faster" | "slower";
}

async function quantizeProduct(t: TestContext, options: Product) {
  const { recipe, instructionSets, latency = "faster" } = options;
  const folder = await makeFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const originalPath = join(folder.path, "original.onnx");
  await writeTinyModel(originalPath, {
    input: [tensorInfo("x", [4, 96])],
    output: [tensorInfo("y", [4, 80])],
    initializer: [
      floatInitializer("w", [96, 80], (index) =>
        // A column of zeros has a scale and a zero point too.
        index % 80 === 7 ? 0 : Math.sin(index * index * 0.37 + index),
      ),
    ],
    node: [node("MatMul", ["x", "w"], ["y"])],
  });
  const report = await compressModel(originalPath, {
    kind: "quantize",
    recipe: resolveRecipe({ scheme: "int8-dynamic" }, recipe ?? {}),
    target: instructionSets ? { ...contribTarget, instructionSets } : contribTarget,
    outputDirectory: folder.path,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
    candidates: fixedCandidates(latency),
  });
  const path = join(folder.path, "model.onnx");
  const { proto } = await openModel(path, 2 ** 20);
  const stored = proto.graph?.initializer.find(({ name }) => name.startsWith("w_quantized"));
  const { form } = weightNamed(report, "w");
  const sqnrDb = await measureSqnrDb(originalPath, path);
  return { originalPath, path, form, type: stored?.dataType, sqnrDb };
}

test("targets with dot products of integers have int8 weights", async (t) => {
  const { type, form } = await quantizeProduct(t, { instructionSets: ["avx2", "avx512_vnni"] });
  assert.equal(type, DataType.INT8);
  assert.equal(form, "int8 with a scale for each output, inputs in uint8");
});

test("targets without them have uint8 weights, as accurate as int8 with them", async (t) => {
  for (const symmetric of [true, false]) {
    const recipe = { symmetric };
    const int8 = await quantizeProduct(t, { recipe });
    const uint8 = await quantizeProduct(t, { recipe, instructionSets: ["avx2"] });
    assert.equal(uint8.type, DataType.UINT8);
    assert.equal(uint8.form, "uint8 with a scale for each output, inputs in uint8");
    const levels = [int8.sqnrDb, uint8.sqnrDb].map((sqnrDb) => sqnrDb.toFixed(1));
    t.diagnostic(`int8 ${levels[0]} dB, uint8 ${levels[1]} dB`);
    assert.ok(Math.abs(uint8.sqnrDb - int8.sqnrDb) < 1, levels.join());
  }
});

test("7-bit weights are what the recipe asks for, and lose accuracy", async (t) => {
  const uint8 = await quantizeProduct(t, { instructionSets: ["avx2"] });
  const recipe = { reduceRange: true };
  const reduced = await quantizeProduct(t, { recipe, instructionSets: ["avx2"] });
  assert.equal(reduced.type, DataType.INT8);
  t.diagnostic(`uint8 ${uint8.sqnrDb.toFixed(1)} dB, 7 bits ${reduced.sqnrDb.toFixed(1)} dB`);
  assert.ok(reduced.sqnrDb < uint8.sqnrDb - 2);
});

test("uint8 weights of products that are slower are restored at load", async (t) => {
  const options: Product = { instructionSets: ["avx2"], latency: "slower" };
  for (const recipe of [{ granularity: "tensor" }, { symmetric: false }, {}] as const) {
    const { form, sqnrDb } = await quantizeProduct(t, { ...options, recipe });
    assert.match(form ?? "", /^uint8 .*restored at load$/);
    assert.ok(sqnrDb > 40, `${sqnrDb} dB`);
  }
});

test("a weight that opset 9 slices by attributes is taken in integers", async (t) => {
  const folder = await makeFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const original = join(folder.path, "original.onnx");
  const list = (name: string, number: bigint) => ({ name, type: Attribute.INTS, ints: [number] });
  const half = [list("starts", 32n), list("ends", 64n), list("axes", 1n)];
  await writeTinyModel(
    original,
    {
      input: [tensorInfo("x", [4, 64])],
      output: [tensorInfo("y", [4, 32])],
      initializer: [floatInitializer("w", [64, 64], (index) => Math.sin(index * index))],
      node: [node("Slice", ["w"], ["half"], half), node("MatMul", ["x", "half"], ["y"])],
    },
    { opset: 9 },
  );
  const report = await compress(original, folder.path, { scheme: "int8-dynamic" });
  assert.match(weightNamed(report, "w").form ?? "", /inputs in uint8$/);
  const sqnrDb = await measureSqnrDb(original, join(folder.path, "model.onnx"));
  assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
});

const skip = pythonMissing || valgrindMissing;

/** Prints the SQNR of each model but the first to it, on inputs that saturate 16 bits, dB. */
const program = `
import sys
import numpy as np, onnxruntime as ort
def run(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.linspace(0.8, 1, 4 * 96, dtype=np.float32).reshape(4, 96)})[0].astype(np.float64)
original, *results = map(run, sys.argv[1:])
print(*(10 * np.log10((original**2).sum() / ((original - result) ** 2).sum()) for result in results))
`;

test("uint8 weights are exact where int8 saturates: on x86 without VNNI", { skip }, async (t) => {
  const int8 = await quantizeProduct(t, {});
  const uint8 = await quantizeProduct(t, { instructionSets: ["avx2"] });
  const reduced = await quantizeProduct(t, { recipe: { reduceRange: true } });
  // Valgrind's processor has AVX2 and nothing after it.
  const { stdout } = await promisify(execFile)(
    "valgrind",
    ["--tool=none", "-q", pythonInterpreter, "-c", program].concat(
      int8.originalPath,
      int8.path,
      uint8.path,
      reduced.path,
    ),
    { env: { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" } },
  );
  const [ofInt8 = NaN, ofUint8 = NaN, ofReduced = NaN] = stdout.trim().split(" ").map(Number);
  t.diagnostic(`int8 ${ofInt8} dB, uint8 ${ofUint8} dB, 7 bits ${ofReduced} dB`);
  assert.ok(ofInt8 < 20, `int8 ${ofInt8} dB`);
  assert.ok(ofUint8 > 40, `uint8 ${ofUint8} dB`);
  assert.ok(ofReduced > 30, `7 bits ${ofReduced} dB`);
});
