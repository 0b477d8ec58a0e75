import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { readTensor } from "../../../src/engine/onnx/read-tensor.ts";
import { SourceReader } from "../../../src/engine/quantize/tasks/source-reader.ts";
import { english, makeCheckpointFolder } from "../../support/checkpoint-folder.ts";
import { writeArraysNpz, writeFloatsNpz } from "../../support/npz.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { makeFolder } from "../quantize/compress.ts";
import { compress, measureSqnrDb } from "./compress-calibrated.ts";

const [inputs, outputs, largeChannel, size] = [64, 32, 5, 60];
const samples = "file:///x.npz";
const smoothed = {
  scheme: "int8-dynamic",
  calibration: { data: samples, samples: 24 },
  evaluation: { data: samples, samples: 8 },
} as const;

type Normalization = "LayerNormalization" | "Mul and Add";
interface Written {
  readonly normalization: Normalization;
  /** Whether the model gives what is normalized too, as a residual connection takes it. */
  readonly isShared: boolean;
  readonly product: "MatMul" | "Gemm";
}

/** Products of what a normalization gives, one channel of which is far larger than the others. */
async function writeNormalized(folder: string, options: Written): Promise<string> {
  const { normalization, isShared, product } = options;
  const path = join(folder, "model.onnx");
  const normal = createNormal(createRandom(7));
  const isLarge = (input: number) => input === largeChannel;
  const weight = (name: string) => {
    const numbers = Array.from({ length: inputs * outputs }, (_, index) =>
      isLarge(Math.floor(index / outputs)) ? normal() / size : normal(),
    );
    const transposed = (index: number) =>
      Number(numbers[(index % inputs) * outputs + Math.floor(index / inputs)]);
    return product === "MatMul"
      ? floatInitializer(name, [inputs, outputs], (index) => Number(numbers[index]))
      : floatInitializer(name, [outputs, inputs], transposed);
  };
  const multiply = (name: string, output: string) =>
    product === "MatMul"
      ? node("MatMul", ["n", name], [output])
      : node("Gemm", ["n", name], [output], [integerAttribute("transB", 1)]);
  const nodes = {
    LayerNormalization: [node("LayerNormalization", ["x", "scale", "offset"], ["n"])],
    "Mul and Add": [
      node("Mul", ["x", "scale"], ["scaled"]),
      node("Add", ["offset", "scaled"], ["n"]),
    ],
  } as const;
  const leading = { LayerNormalization: [], "Mul and Add": [1] } as const;
  await writeTinyModel(
    path,
    {
      node: [...nodes[normalization], multiply("a", "y"), multiply("b", "z")],
      input: [tensorInfo("x", ["rows", inputs])],
      output: [
        tensorInfo("y", ["rows", outputs]),
        tensorInfo("z", ["rows", outputs]),
        ...(isShared ? [tensorInfo("n", ["rows", inputs])] : []),
      ],
      initializer: [
        floatInitializer("scale", [...leading[normalization], inputs], (input) =>
          isLarge(input) ? size : 1 + input / inputs,
        ),
        floatInitializer("offset", [inputs], (input) => Math.sin(input)),
        weight("a"),
        weight("b"),
      ],
    },
    { opset: 17 },
  );
  const values = Array.from({ length: 32 * 8 * inputs }, createNormal(createRandom(8)));
  await writeFloatsNpz(folder, "x", { shape: [32, 8, inputs], values });
  return path;
}

async function compressSamples(model: string, folder: string, recipe: PartialRecipe) {
  const data = recipe.calibration?.data && join(folder, "x.npz");
  return compress(model, folder, { recipe, ...(data && { data }) });
}

async function measureSamples(model: string, folder: string): Promise<number> {
  return measureSqnrDb(model, folder, join(folder, "x.npz"));
}

async function readConstants(path: string) {
  const model = await openModel(path, 2 ** 24);
  const tensors = model.proto.graph?.initializer ?? [];
  const find = (name: string) => {
    const tensor = tensors.find((each) => each.name === name);
    assert.ok(tensor, `${name} is not among ${tensors.map((each) => each.name).join()}`);
    return tensor;
  };
  const read = (name: string) => readTensor(model, find(name)).slice();
  return {
    operators: model.proto.graph?.node.map(({ opType }) => opType) ?? [],
    names: tensors.map(({ name }) => name),
    readShape: (name: string) => find(name).dims.map(Number),
    readFloats: (name: string) => new Float32Array(read(name).buffer),
    readCodes: (name: string) => new Int8Array(read(name).buffer),
  };
}

const normalizations = ["LayerNormalization", "Mul and Add"] as const;
for (const normalization of normalizations) {
  for (const isShared of [false, true]) {
    const place = isShared ? "beside it" : "in its constants";
    test(`Inputs behind ${normalization} are divided ${place} by what weights are multiplied by`, async () => {
      for (const product of ["MatMul", "Gemm"] as const) {
        await using folder = await makeFolder();
        const model = await writeNormalized(folder.path, { normalization, isShared, product });
        const report = await compressSamples(model, folder.path, smoothed);
        assert.equal(report.calibration?.fittedWeights, 2);
        assert.match(report.weights.find(({ name }) => name === "a")?.form ?? "", /, smoothed$/);
        const before = await readConstants(model);
        const after = await readConstants(join(folder.path, "result", "model.onnx"));
        const [scale, offset] = ["scale", "offset"].map((name) => before.readFloats(name));
        assert.ok(scale && offset);
        const factors = isShared
          ? after.readFloats("n_factors")
          : after.readFloats("scale_smoothed").map((each, input) => each / Number(scale[input]));
        if (isShared) assert.deepEqual(after.readFloats("scale"), scale);
        else {
          const given = ["scale", "offset"].filter((name) => after.names.includes(name));
          assert.deepEqual(given, [], "the former constants are left");
          assert.deepEqual(after.readShape("scale_smoothed"), before.readShape("scale"));
          for (const [input, each] of after.readFloats("offset_smoothed").entries()) {
            const expected = Number(offset[input]) * Number(factors[input]);
            assert.ok(
              Math.abs(each - expected) <= 1e-6 * Math.abs(expected),
              `${each} ${expected}`,
            );
          }
        }
        const weights = before.readFloats("a");
        const codes = after.readCodes("a_quantized");
        const scales = after.readFloats("a_scale");
        for (const [index, code] of codes.entries()) {
          const [row, column] =
            product === "MatMul"
              ? [Math.floor(index / outputs), index % outputs]
              : [index % inputs, Math.floor(index / inputs)];
          const step = Number(scales[column]) * Number(factors[row]);
          const error = Math.abs(code * step - Number(weights[index]));
          assert.ok(error <= step * 0.501, `code ${index}`);
        }
      }
    });
  }
}

test("A large channel no longer costs the others their codes", async () => {
  for (const isShared of [false, true]) {
    await using folder = await makeFolder();
    const options = { normalization: "LayerNormalization", isShared, product: "Gemm" } as const;
    const model = await writeNormalized(folder.path, options);
    await compressSamples(model, folder.path, { scheme: "int8-dynamic" });
    const rounded = await measureSamples(model, folder.path);
    await compressSamples(model, folder.path, smoothed);
    const gain = (await measureSamples(model, folder.path)) - rounded;
    assert.ok(gain >= 3, `${gain} dB more than ${rounded}`);
  }
});

test("What products of a language model take from its norms is smoothed", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3", english);
  const checkpoint = join(folder, "config.json");
  const result = join(folder, "result", "model.onnx");
  const recipe = { scheme: "int8-dynamic", operators: "contrib", minElements: 0 } as const;
  await compressSamples(checkpoint, folder, recipe);
  const before = await readConstants(result);
  const calibration = { generated: true, samples: 8 };
  const report = await compressSamples(checkpoint, folder, { ...recipe, calibration });
  const after = await readConstants(result);
  assert.deepEqual(after.operators, before.operators);
  const smoothedWeights = report.weights.filter(({ form }) => form?.endsWith(", smoothed"));
  assert.deepEqual(
    smoothedWeights.map(({ name }) => name),
    [0, 1].flatMap((layer) =>
      ["attn.qkv_proj", "mlp.gate_proj", "mlp.up_proj"].map(
        (product) => `model.layers.${layer}.${product}.MatMul.weight`,
      ),
    ),
  );
  const norms = after.names.filter((name) => name.includes("layernorm"));
  assert.deepEqual(norms, [
    "model.layers.2.final_norm_layernorm.weight",
    ...[0, 1].flatMap((layer) =>
      ["input", "post_attention"].map(
        (place) => `model.layers.${layer}.${place}_layernorm.weight_smoothed`,
      ),
    ),
  ]);
});

test("Padding is not observed", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "masked.onnx");
  await writeTinyModel(
    model,
    {
      node: [
        node("Mul", ["x", "scale"], ["n"]),
        node("MatMul", ["n", "w"], ["all"]),
        node("Mul", ["all", "attention_mask"], ["y"]),
      ],
      input: [tensorInfo("x", [8, inputs]), tensorInfo("attention_mask", [8, 1])],
      output: [tensorInfo("y", [8, outputs])],
      initializer: [
        floatInitializer("scale", [inputs], (input) => 1 + input),
        floatInitializer("w", [inputs, outputs], createNormal(createRandom(1))),
      ],
    },
    { opset: 17 },
  );
  const normal = createNormal(createRandom(2));
  const values = Array.from({ length: 16 * 8 * inputs }, normal);
  const isUsed = (row: number) => row % 8 > 0 && row % 8 < 6;
  const results = await Promise.all(
    [1, 100].map(async (padding) => {
      const place = join(folder.path, String(padding));
      await mkdir(place);
      const padded = values.map((value, index) =>
        isUsed(Math.floor(index / inputs)) ? value : value * (1 + padding * (index % inputs)),
      );
      const mask = Array.from({ length: 16 * 8 }, (_, row) => Number(isUsed(row)));
      await writeArraysNpz(join(place, "x.npz"), {
        x: { shape: [16, 8, inputs], values: padded },
        attention_mask: { shape: [16, 8, 1], values: mask },
      });
      const { scheme, calibration } = smoothed;
      const report = await compressSamples(model, place, { scheme, calibration });
      assert.equal(report.calibration?.fittedWeights, 1);
      return readFile(join(place, "result", "model.onnx"));
    }),
  );
  assert.deepEqual(results[0], results[1]);
});

test("Where no normalization comes before a product, nothing changes", async () => {
  await using folder = await makeFolder();
  const options = { normalization: "Mul and Add", isShared: false, product: "MatMul" } as const;
  await writeNormalized(folder.path, options);
  const model = join(folder.path, "bare.onnx");
  const weight = createNormal(createRandom(9));
  await writeTinyModel(model, {
    node: [node("Relu", ["x"], ["n"]), node("MatMul", ["n", "w"], ["y"])],
    input: [tensorInfo("x", ["rows", inputs])],
    output: [tensorInfo("y", ["rows", outputs])],
    initializer: [floatInitializer("w", [inputs, outputs], weight)],
  });
  const result = join(folder.path, "result", "model.onnx");
  await compressSamples(model, folder.path, { scheme: "int8-dynamic" });
  const before = await readFile(result);
  const { warnings } = await compressSamples(model, folder.path, smoothed);
  assert.deepEqual(await readFile(result), before);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["calibration_unused"],
  );
});

test("Weights that are restored at load keep the inputs that they have", async () => {
  await using folder = await makeFolder();
  const options = {
    normalization: "LayerNormalization",
    isShared: false,
    product: "MatMul",
  } as const;
  const model = await writeNormalized(folder.path, options);
  const result = join(folder.path, "result", "model.onnx");
  await compressSamples(model, folder.path, { scheme: "int8-dynamic", dequantize: "load-only" });
  const before = await readFile(result);
  await compressSamples(model, folder.path, { ...smoothed, dequantize: "load-only" });
  assert.deepEqual(await readFile(result), before);
});

test("Values are multiplied by their input's scale whatever part of a weight is read", () => {
  const [rows, columns] = [6, 10];
  const numbers = Float32Array.from({ length: rows * columns }, (_, index) => index + 1);
  const source = { kind: "memory", bytes: new Uint8Array(numbers.buffer) } as const;
  for (const [count, inner] of [
    [rows, columns],
    [columns, 1],
  ] as const) {
    const scales = Array.from({ length: count }, (_, index) => 2 ** index);
    const inputScales = { scales, inner };
    const rectangle = { start: 13, rows: 4, columns: 5, pitch: columns };
    using reader = new SourceReader({ source, sourceType: "float32", inputScales });
    for (const { start, rows: read, columns: width, pitch } of [
      { start: 0, rows: 1, columns: rows * columns, pitch: rows * columns },
      rectangle,
    ]) {
      const found = reader.read({ start, rows: read, columns: width, pitch });
      const expected = Float32Array.from({ length: read * width }, (_, each) => {
        const index = start + Math.floor(each / width) * pitch + (each % width);
        const input = inner === 1 ? index % columns : Math.floor(index / columns);
        return (index + 1) * 2 ** input;
      });
      assert.deepEqual(found, expected);
    }
  }
});
