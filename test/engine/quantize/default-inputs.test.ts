import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { z } from "zod";
import { ServiceError } from "../../../src/contract/errors.ts";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import type { CompressionReport } from "../../../src/engine/compression-report.ts";
import { TensorProto_DataType as DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { pythonMissing, runPython } from "../../support/python.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compress, makeFolder, weightNamed } from "./compress.ts";

/** ONNX's own backend tests that PyTorch exported, whose weights are listed among the inputs, in two IR versions. */
const convert = `
import glob, os, sys
import onnx
from onnx import version_converter
data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
paths = [path for path in sorted(glob.glob(data + "/pytorch-*/*/model.onnx"))]
for path in paths:
    model = onnx.load(path)
    if model.opset_import[0].version < 7: model = version_converter.convert_version(model, 7)
    name = os.path.basename(os.path.dirname(path)) + ".onnx"
    for version in (3, 8):
        model.ir_version = version
        onnx.save(model, os.path.join(sys.argv[1], f"ir{version}", name))
print(len(paths))
`;

/** For each pair of an original and its result: SQNR of the outputs, and a hash of the result's tensors. */
const compare = `
import hashlib, json, sys
import numpy as np, onnx, onnxruntime as ort

def run(path, feeds=None):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if feeds is None:
        random = np.random.default_rng(0)
        types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        feeds = {value.name: random.standard_normal(value.shape).clip(0).astype(types[value.type]) for value in session.get_inputs()}
    return feeds, session.run(None, feeds)

compared = []
for original, result in json.load(open(sys.argv[1])):
    onnx.checker.check_model(result, full_check=True)
    feeds, before = run(original)
    _, after = run(result, feeds)
    noise = sum(((x.astype(np.float64) - y) ** 2).sum() for x, y in zip(before, after))
    signal = sum((x.astype(np.float64) ** 2).sum() for x in before)
    tensors = sorted(tensor.SerializeToString() for tensor in onnx.load(result).graph.initializer)
    digest = hashlib.sha256(b"".join(tensors)).hexdigest()
    compared.append({"sqnrDb": 150.0 if noise == 0 else float(10 * np.log10(signal / noise)), "digest": digest})
print(json.dumps(compared))
`;

const recipes: Record<string, PartialRecipe> = {
  "int8-weight": { scheme: "int8-weight", minElements: 1 },
  "int8-dynamic": { scheme: "int8-dynamic", minElements: 1, fallback: "int8-weight" },
  "int4-weight": { scheme: "int4-weight", minElements: 1, fallback: "int8-weight" },
  fp16: { scheme: "fp16", minElements: 1 },
};

let folder = "";
before(async () => {
  if (pythonMissing !== false) return;
  folder = await mkdtemp(join(tmpdir(), "default-inputs-"));
  for (const name of ["ir3", "ir8"]) await mkdir(join(folder, name));
  assert.equal(Number(await runPython(convert, [folder])), 117);
});
after(async () => {
  if (folder !== "") await rm(folder, { recursive: true });
});

/** Undefined for a model that has no weight of a form. */
async function tryCompress(
  path: string,
  directory: string,
  recipe: PartialRecipe,
): Promise<CompressionReport | undefined> {
  await mkdir(directory, { recursive: true });
  return compress(path, directory, recipe).catch((error: unknown) => {
    if (error instanceof ServiceError && error.code === "nothing_to_quantize") return undefined;
    throw error;
  });
}

async function inputNames(path: string): Promise<string[]> {
  const { proto } = await openModel(path, 2 ** 30);
  return proto.graph?.input.map(({ name }) => name) ?? [];
}

for (const [name, recipe] of Object.entries(recipes)) {
  test(
    `${name} takes weights that are listed among the inputs as others`,
    { skip: pythonMissing },
    async () => {
      await using results = await makeFolder();
      const pairs: [string, string][] = [];
      for (const file of await readdir(join(folder, "ir3"))) {
        const old = { path: join(folder, "ir3", file), directory: join(results.path, "3", file) };
        const current = {
          path: join(folder, "ir8", file),
          directory: join(results.path, "8", file),
        };
        const constants = await tryCompress(old.path, old.directory, recipe);
        const report = await tryCompress(current.path, current.directory, recipe);
        assert.deepEqual(report?.weights, constants?.weights, file);
        if (report === undefined) continue;
        const before = await inputNames(current.path);
        const changed = report.weights.filter(({ form }) => form !== null);
        const left = report.weights.filter(({ form }) => form === null);
        const isInput = (inputs: readonly string[]) => (weight: { name: string }) =>
          inputs.includes(weight.name);
        const after = await inputNames(join(current.directory, "model.onnx"));
        assert.equal(changed.some(isInput(after)), false, file);
        assert.equal(left.filter(isInput(before)).every(isInput(after)), true, file);
        assert.deepEqual(
          report.warnings.map(({ code }) => code).includes("inputs_fixed"),
          changed.some(isInput(before)),
        );
        const constantInputs = await inputNames(join(old.directory, "model.onnx"));
        assert.equal(constants?.weights.some(isInput(constantInputs)), false, file);
        for (const { path, directory } of [old, current])
          pairs.push([path, join(directory, "model.onnx")]);
      }
      assert.equal(pairs.length, 2 * 34);
      const compared = await comparePairs(results.path, pairs);
      for (const [index, { sqnrDb, digest }] of compared.entries()) {
        const [path = ""] = pairs[index] ?? [];
        assert.ok(sqnrDb > 20, `${path}: ${sqnrDb} dB`);
        if (index % 2 === 1) assert.equal(digest, compared[index - 1]?.digest, path);
      }
    },
  );
}

const comparisons = z.array(z.object({ sqnrDb: z.number(), digest: z.string() }));

async function comparePairs(directory: string, pairs: readonly [string, string][]) {
  const list = join(directory, "pairs.json");
  await writeFile(list, JSON.stringify(pairs));
  return comparisons.parse(JSON.parse(await runPython(compare, [list])));
}

const io = { input: [tensorInfo("x", ["n", 32])], output: [tensorInfo("y", ["n", 32])] };
const matrix = (...dims: number[]) =>
  floatInitializer("w", dims, (index) => Math.sin(index * index));

test("a default that half of its users take in half precision is a constant for all", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "original.onnx");
  await writeTinyModel(path, {
    ...io,
    input: [...io.input, tensorInfo("w", [32, 32]), tensorInfo("unused", [32, 32])],
    initializer: [matrix(32, 32), { ...matrix(32, 32), name: "unused" }],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("Cos", ["w"], ["b"]),
      node("MatMul", ["a", "b"], ["y"]),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "fp16" });
  assert.equal(weightNamed(report, "w").form, "float16 beside the original");
  assert.deepEqual(report.warnings, [
    {
      code: "inputs_fixed",
      message: '1 inputs that have default values, such as "w", are constants in the result',
    },
  ]);
  assert.deepEqual(await inputNames(join(folder.path, "model.onnx")), ["x", "unused"]);
});

test("a default shape is a constant where the nodes that took it are gone", async () => {
  const cases = [
    { recipe: { scheme: "int8-dynamic" }, inputs: ["x"] },
    { recipe: { scheme: "int8-weight" }, inputs: ["x", "shape"] },
  ] as const;
  for (const { recipe, inputs } of cases) {
    await using folder = await makeFolder();
    const path = join(folder.path, "original.onnx");
    const shape = {
      name: "shape",
      dims: [2n],
      dataType: DataType.INT64,
      rawData: new Uint8Array(BigInt64Array.of(32n, 32n).buffer),
    };
    await writeTinyModel(path, {
      ...io,
      input: [...io.input, tensorInfo("w", [1, 32, 32]), tensorInfo("shape", [2], DataType.INT64)],
      initializer: [matrix(1, 32, 32), shape],
      node: [node("Reshape", ["w", "shape"], ["v"]), node("MatMul", ["x", "v"], ["y"])],
    });
    const report = await compress(path, folder.path, recipe);
    assert.notEqual(weightNamed(report, "w").form, null);
    assert.deepEqual(await inputNames(join(folder.path, "model.onnx")), inputs);
    assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 30);
  }
});
