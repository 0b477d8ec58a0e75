import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { standardOpset } from "../../../src/engine/onnx/node-attributes.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { pythonMissing } from "../../support/python.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import type { RealModelName } from "../../support/real-models.ts";
import {
  node,
  graphAttribute,
  integerAttribute,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compareInPython, compareResult, compress, makeFolder, weightNamed } from "./compress.ts";

/** Least SQNR of outputs on noise, dB. */
const models: readonly [RealModelName, number][] = [
  ["minilm", 57],
  ["ocr-recognition", 52],
  ["ocr-recognition-v6", 41.5],
  ["ocr-orientation", 44.5],
  ["page-orientation", 44],
  ["voice-legacy", 60.5],
  ["voice-v5", 47.5],
  ["voice-without-if", 60.5],
];

const missing =
  (await Promise.all(models.map(([name]) => realModelMissing(name)))).find(
    (reason) => reason !== false,
  ) ?? false;
const skip = pythonMissing || missing;
test(
  "fp16 of real models keeps inputs and outputs and stays close to the originals",
  { skip },
  async () => {
    await using folder = await makeFolder();
    const pairs = [];
    for (const [name] of models) {
      const directory = join(folder.path, name);
      await mkdir(directory);
      await compress(realModel(name), directory, { scheme: "fp16" });
      pairs.push([realModel(name), join(directory, "model.onnx")] as const);
    }
    for (const [index, { sqnrDb }] of (await compareInPython(pairs)).entries()) {
      const [name, least = NaN] = models[index] ?? [];
      assert.ok(sqnrDb >= least, `${name}: ${sqnrDb} dB`);
    }
  },
);

const io = { input: [tensorInfo("x", ["n", 32])], output: [tensorInfo("y", ["n", 32])] };
const matrix = floatInitializer("w", [32, 32], (index) => Math.sin(index));

test(
  "a mask of huge numbers and a tiny epsilon stay in single precision",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "mask.onnx");
    await writeTinyModel(path, {
      ...io,
      initializer: [
        matrix,
        floatInitializer("huge", [1], () => -3.4e38),
        floatInitializer("epsilon", [1], () => 1e-12),
        floatInitializer("zero", [1], () => 0),
      ],
      node: [
        node("MatMul", ["x", "w"], ["scores"]),
        node("Less", ["x", "zero"], ["negative"]),
        node("Cast", ["negative"], ["ones"], [{ name: "to", type: 2, i: 1n }]),
        node("Mul", ["ones", "huge"], ["mask"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["shares"]),
        node("Add", ["shares", "epsilon"], ["y"]),
      ],
    });
    const report = await compress(path, folder.path, { scheme: "fp16" });
    assert.match(weightNamed(report, "huge").reason ?? "", /beyond the range/);
    assert.match(weightNamed(report, "epsilon").reason ?? "", /would make zero/);
    assert.equal(weightNamed(report, "w").form, "float16");
    assert.ok((await compareResult(path, folder.path)).sqnrDb > 50);
  },
);

test("a value in half precision that nodes in single take twice is cast for both", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "twice.onnx");
  await writeTinyModel(path, {
    ...io,
    initializer: [matrix, floatInitializer("large", [32], () => 1e5)],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("Mul", ["a", "large"], ["b"]),
      node("Sub", ["large", "a"], ["c"]),
      node("Add", ["b", "c"], ["y"]),
    ],
  });
  await compress(path, folder.path, { scheme: "fp16" });
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 30);
});

test("casts of a model to half precision and to integers see what they saw", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "casts.onnx");
  const to = (type: number) => [integerAttribute("to", type)];
  const { FLOAT, FLOAT16, INT32 } = TensorProto_DataType;
  await writeTinyModel(path, {
    input: io.input,
    output: [...io.output, tensorInfo("fraction", ["n", 32])],
    initializer: [matrix, floatInitializer("thousand", [1], () => 1000)],
    node: [
      node("Exp", ["x"], ["power"]),
      node("Mul", ["power", "thousand"], ["large"]),
      node("MatMul", ["large", "w"], ["product"]),
      node("Cast", ["large"], ["integers"], to(INT32)),
      node("Cast", ["integers"], ["whole"], to(FLOAT)),
      node("Sub", ["large", "whole"], ["fraction"]),
      node("Cast", ["product"], ["half"], to(FLOAT16)),
      node("Cast", ["half"], ["y"], to(FLOAT)),
    ],
  });
  await compress(path, folder.path, { scheme: "fp16" });
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 50);
});

test("a weight with values beyond the range of half precision stays as it is", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "large.onnx");
  await writeTinyModel(path, {
    ...io,
    initializer: [
      matrix,
      floatInitializer("large", [32, 256], () => 1e5),
      floatInitializer("back", [256, 32], () => 1),
    ],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("MatMul", ["a", "large"], ["b"]),
      node("MatMul", ["b", "back"], ["y"]),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "fp16" });
  assert.match(weightNamed(report, "large").reason ?? "", /beyond the range/);
});

test("a weight beyond the range of half precision has the form of the fallback", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "large.onnx");
  await writeTinyModel(path, {
    ...io,
    initializer: [matrix, floatInitializer("large", [32, 32], (index) => 1e5 * Math.cos(index))],
    node: [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "large"], ["y"])],
  });
  const report = await compress(path, folder.path, { scheme: "fp16", fallback: "int8-weight" });
  const { form, reason } = weightNamed(report, "large");
  assert.match(form ?? "", /^int8 /);
  assert.match(reason ?? "", /beyond the range/);
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 30);
});

test("an older model gets the opset in which ARM pools in half precision", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "old.onnx");
  await writeTinyModel(
    path,
    { ...io, initializer: [matrix], node: [node("MatMul", ["x", "w"], ["y"])] },
    { opset: 11 },
  );
  await compress(path, folder.path, { scheme: "fp16" });
  const { proto } = await openModel(join(folder.path, "model.onnx"), 2 ** 20);
  assert.equal(standardOpset(proto.opsetImport), 12);
});

test("initializers that IR version 3 lists among the inputs stay constants", async () => {
  for (const recipe of [
    { scheme: "fp16" },
    { scheme: "int8-weight", dequantize: "run" },
  ] as const) {
    await using folder = await makeFolder();
    const path = join(folder.path, "old.onnx");
    await writeTinyModel(
      path,
      {
        ...io,
        input: [...io.input, tensorInfo("w", [32, 32]), tensorInfo("b", [32])],
        initializer: [matrix, floatInitializer("b", [32], Math.cos)],
        node: [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["y"])],
      },
      { opset: 8, irVersion: 3 },
    );
    const report = await compress(path, folder.path, recipe);
    assert.notEqual(weightNamed(report, "w").form, null);
    const { proto } = await openModel(join(folder.path, "model.onnx"), 2 ** 20);
    const inputs = proto.graph?.input.map(({ name }) => name) ?? [];
    assert.deepEqual(inputs, ["x"]);
  }
});

test("half-precision values reach into subgraphs and back", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "branches.onnx");
  const condition = {
    name: "c",
    dataType: TensorProto_DataType.BOOL,
    dims: [],
    rawData: Uint8Array.of(1),
  };
  const branch = (name: string, operator: string) =>
    graphAttribute(name, {
      output: [tensorInfo(name, ["n", 32])],
      node: [node(operator, ["a", "a"], [name])],
    });
  await writeTinyModel(path, {
    ...io,
    initializer: [matrix, condition],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("If", ["c"], ["b"], [branch("then_branch", "Add"), branch("else_branch", "Pow")]),
      node("MatMul", ["b", "w"], ["y"]),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "fp16" });
  assert.equal(weightNamed(report, "w").form, "float16");
  assert.ok((await compareResult(path, folder.path)).sqnrDb > 50);
});
