import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { planCompression } from "../../../src/engine/plan-compression.ts";
import {
  AttributeProto_AttributeType,
  TensorProto_DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import { pythonMissing } from "../../support/python.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import {
  integerAttribute,
  node,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { compareResult, compress, contribTarget, makeFolder, weightNamed } from "./compress.ts";

const io = { input: [tensorInfo("x", ["n", 32])], output: [tensorInfo("y", ["n", 32])] };

test(
  "weights that model-local functions use are found, and the functions go",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "functions.onnx");
    const alpha = { name: "alpha", refAttrName: "slope", type: AttributeProto_AttributeType.FLOAT };
    const linear = {
      domain: "local",
      name: "Linear",
      input: ["a", "w"],
      output: ["b"],
      attribute: ["slope"],
      opsetImport: [{ domain: "", version: 17n }],
      node: [
        node("MatMul", ["a", "w"], ["product"]),
        node("LeakyRelu", ["product"], ["b"], [alpha]),
      ],
    };
    const twice = {
      domain: "local",
      name: "Twice",
      input: ["a", "w"],
      output: ["c"],
      opsetImport: [
        { domain: "", version: 17n },
        { domain: "local", version: 1n },
      ],
      node: [
        {
          ...node("Linear", ["a", "w"], ["b"], [{ name: "slope", type: 1, f: 0.5 }]),
          domain: "local",
        },
        {
          ...node("Linear", ["b", "w"], ["c"], [{ name: "slope", type: 1, f: 0.25 }]),
          domain: "local",
        },
      ],
    };
    const call = (input: string[], output: string[]) => ({
      ...node("Twice", input, output),
      domain: "local",
    });
    await writeTinyModel(
      path,
      {
        ...io,
        initializer: [
          floatInitializer("w", [32, 32], (index) => Math.sin(index * index)),
          floatInitializer("v", [32, 32], (index) => Math.cos(index ** 3)),
        ],
        node: [call(["x", "w"], ["h"]), call(["h", "v"], ["y"])],
      },
      { functions: [linear, twice], domains: ["local"] },
    );
    const report = await compress(path, folder.path, { scheme: "int8-weight" });
    assert.ok(report.weights.every(({ form }) => form !== null));
    const { operators, sqnrDb } = await compareResult(path, folder.path);
    assert.deepEqual(
      [operators["DequantizeLinear"], operators["MatMul"], operators["LeakyRelu"]],
      [2, 4, 4],
    );
    assert.ok(sqnrDb > 42, `${sqnrDb} dB`);
  },
);

test(
  "weights that are sliced, joined and transposed first are quantized as they are",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "moved.onnx");
    const list = (name: string, values: number[]) => ({
      name,
      dims: [BigInt(values.length)],
      dataType: TensorProto_DataType.INT64,
      int64Data: values.map(BigInt),
    });
    await writeTinyModel(path, {
      ...io,
      initializer: [
        floatInitializer("w", [64, 32], (index) => Math.sin(index * index)),
        list("zero", [0]),
        list("one", [1]),
        list("middle", [32]),
        list("end", [2 ** 40]),
        list("back", [-32]),
        list("shape", [32, -1]),
      ],
      node: [
        node("Slice", ["w", "zero", "middle", "zero"], ["top"]),
        node("Slice", ["w", "back", "end", "zero"], ["bottom"]),
        node("Concat", ["bottom", "top"], ["turned"], [integerAttribute("axis", 1)]),
        node("Transpose", ["turned"], ["tall"]),
        node("Unsqueeze", ["tall", "zero"], ["thick"]),
        node("Squeeze", ["thick", "zero"], ["thin"]),
        node("Reshape", ["thin", "shape"], ["wide"]),
        node("MatMul", ["x", "wide"], ["long"]),
        node("Slice", ["long", "zero", "middle", "one"], ["y"]),
      ],
    });
    const report = await compress(path, folder.path, { scheme: "int8-weight" });
    assert.notEqual(weightNamed(report, "w").form, null);
    const { sqnrDb } = await compareResult(path, folder.path);
    assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
  },
);

test("a weight that is split at computed places is restored", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "split.onnx");
  const sizes = { name: "sizes", dims: [2n], dataType: TensorProto_DataType.INT32 };
  const { INT64 } = TensorProto_DataType;
  await writeTinyModel(path, {
    ...io,
    initializer: [
      floatInitializer("w", [32, 32], (index) => Math.sin(index * index)),
      { ...sizes, int32Data: [24, 8] },
    ],
    node: [
      node("Cast", ["sizes"], ["places"], [integerAttribute("to", INT64)]),
      node("Split", ["w", "places"], ["left", "right"], [integerAttribute("axis", 1)]),
      node("MatMul", ["x", "left"], ["a"]),
      node("MatMul", ["x", "right"], ["b"]),
      node("Concat", ["b", "a"], ["y"], [integerAttribute("axis", 1)]),
    ],
  });
  const report = await compress(path, folder.path, {
    scheme: "int8-weight",
    granularity: "block",
    operators: "contrib",
    fallback: "int8-weight",
  });
  assert.notEqual(weightNamed(report, "w").form, null);
  const { sqnrDb } = await compareResult(path, folder.path);
  assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
});

test(
  "the LSTM and Conv weights of a voice model are all quantized",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const report = await compress(realModel("voice-v5"), folder.path, { scheme: "int8-weight" });
    const left = report.weights.filter(
      ({ form, originalBytes }) => form === null && originalBytes > 4096,
    );
    assert.deepEqual(left, []);
    assert.ok(report.resultBytes < 0.45 * report.originalBytes);
  },
);

test("inputs with default values that are weights become constants, with a warning", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "original.onnx");
  await writeTinyModel(path, {
    ...io,
    input: [...io.input, tensorInfo("w", [32, 32])],
    initializer: [floatInitializer("w", [32, 32], (index) => Math.sin(index * index))],
    node: [node("MatMul", ["x", "w"], ["y"])],
  });
  const report = await compress(path, folder.path, { scheme: "int8-weight" });
  assert.deepEqual(
    report.warnings.map(({ code, message }) => [code, message]),
    [
      [
        "inputs_fixed",
        '1 inputs that have default values, such as "w", are constants in the result',
      ],
    ],
  );
});

test("planCompression() knows the size of the result", async () => {
  for (const scheme of ["int8-weight", "fp16"] as const) {
    await using folder = await makeFolder();
    const options = {
      kind: "compress",
      recipe: resolveRecipe({ scheme }),
      target: contribTarget,
    } as const;
    const plan = await planCompression(realModel("ocr-recognition"), options);
    const report = await compress(realModel("ocr-recognition"), folder.path, { scheme });
    assert.equal(plan.resultBytes, report.resultBytes);
    assert.equal(report.weights.length, plan.weights.length);
  }
});

test(
  "a result declares types of the values that it has",
  { skip: await realModelMissing("ocr-recognition-v6") },
  async () => {
    const recipe = resolveRecipe({ scheme: "int8-static", calibration: { generated: true } });
    const options = { kind: "compress", recipe, target: contribTarget } as const;
    const plan = await planCompression(realModel("ocr-recognition-v6"), options);
    const { node: nodes = [], valueInfo = [] } = plan.model.proto.graph ?? {};
    const computed = new Set(nodes.flatMap(({ output }) => output));
    const lost = valueInfo.filter(({ name }) => !computed.has(name));
    assert.deepEqual([lost.map(({ name }) => name), valueInfo.length], [[], 288]);
  },
);

test(
  "a compression that is cancelled stops and leaves nothing",
  { skip: await realModelMissing("minilm") },
  async () => {
    await using folder = await makeFolder();
    const controller = new AbortController();
    const running = compressModel(realModel("minilm"), {
      kind: "compress",
      recipe: resolveRecipe({ scheme: "int4-weight", operators: "contrib" }),
      target: contribTarget,
      outputDirectory: folder.path,
      signal: controller.signal,
      onProgress: (fraction) => {
        if (fraction > 0.2) controller.abort(new Error("cancelled"));
      },
      log: () => {},
    });
    await assert.rejects(running, /cancelled/);
    assert.deepEqual(await readdir(folder.path), []);
  },
);
