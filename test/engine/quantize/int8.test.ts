import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { pythonMissing } from "../../support/python.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import type { RealModelName } from "../../support/real-models.ts";
import {
  integerAttribute,
  node,
  graphAttribute,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compareResult, compress, makeFolder, weightNamed } from "./compress.ts";

const io = { input: [tensorInfo("x", ["n", 32])], output: [tensorInfo("y", ["n", 64])] };
const matrix = floatInitializer("w", [32, 64], (index) => Math.sin(index));

/** Least SQNR of outputs on noise, dB. */
const int8Models: readonly [RealModelName, number][] = [
  ["voice-v5", 11.5],
  ["voice-legacy", 33.5],
  ["ocr-orientation", 47],
  ["ocr-orientation-constants", 47],
  ["ocr-recognition", 16],
  ["ocr-recognition-v6", 20.5],
  ["page-orientation", 21.5],
  ["minilm", 22],
];

for (const [name, least] of int8Models) {
  const skip = pythonMissing || (await realModelMissing(name));
  test(
    `int8-weight of ${name} passes the checker and stays close to the original`,
    { skip },
    async () => {
      await using folder = await makeFolder();
      const report = await compress(realModel(name), folder.path, { scheme: "int8-weight" });
      const comparison = await compareResult(realModel(name), folder.path);
      assert.ok(comparison.sqnrDb >= least, `${comparison.sqnrDb} dB`);
      assert.ok(report.resultBytes < 0.66 * report.originalBytes);
      for (const { form, reason, error } of report.weights) {
        // What is multiplied by others' numbers has no other form.
        const isRounded = form !== null && !form.startsWith("float32");
        assert.ok(isRounded === (error !== null) && (form !== null || reason !== null));
      }
    },
  );
}

for (const [name, least] of [
  ["minilm", 15.8],
  ["ocr-recognition", 16.5],
  ["page-orientation", 21.5],
] as const) {
  const skip = pythonMissing || (await realModelMissing(name));
  test(
    `int8-dynamic of ${name} multiplies in integers and holds the rest as int8 weights`,
    { skip },
    async () => {
      await using folder = await makeFolder();
      const recipe = {
        scheme: "int8-dynamic",
        reduceRange: true,
        fallback: "int8-weight",
      } as const;
      await compress(realModel(name), folder.path, recipe);
      const { sqnrDb, operators } = await compareResult(realModel(name), folder.path);
      assert.ok(sqnrDb >= least, `${sqnrDb} dB`);
      assert.ok((operators["MatMulInteger"] ?? 0) > 0);
      assert.ok((operators["DynamicQuantizeLinear"] ?? 0) <= (operators["MatMulInteger"] ?? 0));
    },
  );
}

test("int8-dynamic keeps what a Gemm computes", { skip: pythonMissing }, async () => {
  for (const symmetric of [true, false]) {
    await using folder = await makeFolder();
    const path = join(folder.path, "gemm.onnx");
    const float = (name: string, f: number) => ({ name, type: 1, f });
    const attributes = [
      integerAttribute("transA", 1),
      integerAttribute("transB", 1),
      float("alpha", 0.5),
      float("beta", 2),
    ];
    await writeTinyModel(path, {
      input: [tensorInfo("x", [32, 8])],
      output: [tensorInfo("y", [8, 64])],
      initializer: [
        floatInitializer("w", [64, 32], (index) => Math.sin(index * index)),
        floatInitializer("c", [64], (index) => index / 9),
      ],
      node: [node("Gemm", ["x", "w", "c"], ["y"], attributes)],
    });
    await compress(path, folder.path, { scheme: "int8-dynamic", symmetric });
    const { sqnrDb, operators } = await compareResult(path, folder.path);
    assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
    assert.equal(operators["Gemm"], undefined);
  }
});

test("a weight that several nodes use is stored once", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "shared.onnx");
  await writeTinyModel(path, {
    ...io,
    initializer: [matrix],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("MatMul", ["x", "w"], ["b"]),
      node("Add", ["a", "b"], ["y"]),
    ],
  });
  for (const scheme of ["int8-weight", "int8-dynamic"] as const) {
    await compress(path, folder.path, { scheme });
    const { operators, sqnrDb } = await compareResult(path, folder.path);
    assert.equal(operators["DequantizeLinear"] ?? operators["DynamicQuantizeLinear"], 1);
    assert.ok(sqnrDb > 35);
  }
});

test(
  "weights behind an Identity and in branches of If are found",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "branches.onnx");
    const branch = (name: string, inner: string) =>
      graphAttribute(name, {
        output: [tensorInfo(`${inner}_y`, ["n", 64])],
        node: [node("MatMul", ["x", inner], [`${inner}_y`])],
      });
    const inside = graphAttribute("else_branch", {
      output: [tensorInfo("else_y", ["n", 64])],
      initializer: [floatInitializer("inside", [32, 64], Math.cos)],
      node: [node("MatMul", ["x", "inside"], ["else_y"])],
    });
    const condition = {
      name: "c",
      dataType: TensorProto_DataType.BOOL,
      dims: [],
      rawData: Uint8Array.of(1),
    };
    await writeTinyModel(path, {
      ...io,
      initializer: [matrix, condition],
      node: [
        node("Identity", ["w"], ["same"]),
        node("If", ["c"], ["y"], [branch("then_branch", "same"), inside]),
      ],
    });
    const report = await compress(path, folder.path, { scheme: "int8-weight" });
    assert.notEqual(weightNamed(report, "w").form, null);
    assert.notEqual(weightNamed(report, "inside").form, null);
    assert.ok((await compareResult(path, folder.path)).sqnrDb > 35);
  },
);

test("weights that fit no form are left alone with the reason", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "reasons.onnx");
  const other = (name: string, dims: number[], dataType: number, rawData: Uint8Array) => ({
    name,
    dims: dims.map(BigInt),
    dataType,
    rawData,
  });
  await writeTinyModel(path, {
    ...io,
    initializer: [
      matrix,
      floatInitializer("scale", [32, 64], () => 2),
      floatInitializer("small", [2, 2], () => 1),
      floatInitializer("scalar", [], () => 1),
      floatInitializer("unused", [32, 64], () => 1),
      floatInitializer("infinite", [32, 64], (index) => (index === 9 ? Infinity : 1)),
      floatInitializer("secret", [32, 64], () => 1),
      other("none", [0, 64], TensorProto_DataType.FLOAT, new Uint8Array()),
      other("double", [32, 64], TensorProto_DataType.DOUBLE, new Uint8Array(32 * 64 * 8)),
    ],
    node: [
      node("MatMul", ["x", "w"], ["a"]),
      node("Mul", ["scale", "scalar"], ["b"]),
      node("MatMul", ["x", "infinite"], ["c"]),
      { ...node("MatMul", ["x", "secret"], ["d"]), name: "head/secret" },
      node("MatMul", ["small", "small"], ["e"]),
      node("Identity", ["a"], ["y"]),
    ],
  });
  const report = await compress(path, folder.path, {
    scheme: "int8-weight",
    exclude: ["head/*"],
    minElements: 8,
  });
  const reasons = Object.fromEntries(
    report.weights.map(({ name, reason }) => [name, reason ?? ""]),
  );
  assert.equal(reasons["w"], "");
  assert.match(reasons["scale"] ?? "", /input 0 of Mul/);
  assert.match(reasons["small"] ?? "", /fewer elements than minElements 8/);
  assert.match(reasons["scalar"] ?? "", /fewer elements than minElements 8/);
  assert.match(reasons["unused"] ?? "", /not used/);
  assert.match(reasons["infinite"] ?? "", /not finite/);
  assert.match(reasons["secret"] ?? "", /"head\/secret" matches "head\/\*"/);
  assert.match(reasons["none"] ?? "", /no elements/);
  assert.match(reasons["double"] ?? "", /float64/);
  assert.deepEqual((await readdir(folder.path)).toSorted(), ["model.onnx", "reasons.onnx"]);
});

test("a model with no weight for the scheme is refused with the reasons", async () => {
  await using folder = await makeFolder();
  await assert.rejects(compress(realModel("voice-v5"), folder.path, { scheme: "int8-dynamic" }), {
    code: "nothing_to_quantize",
    message: /fits none of the model's \d+ weights/,
  });
  assert.deepEqual(await readdir(folder.path), []);
});

test("weights come out in shards of bounded size", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const report = await compress(realModel("voice-legacy"), folder.path, {
    scheme: "int8-weight",
    sharding: { maxShardBytes: 200_000 },
  });
  assert.equal(report.shards, 3);
  const shards = report.files.filter(({ kind }) => kind === "weights");
  assert.ok(
    shards.every(({ bytes }) => bytes <= 266_240),
    JSON.stringify(shards),
  );
  assert.ok(report.files.some(({ name }) => name === "model-00003-of-00003.bin"));
  assert.ok((await compareResult(realModel("voice-legacy"), folder.path)).sqnrDb > 33.5);
});

test("all-zero weights and half-precision weights are held", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "half.onnx");
  const halves = new Uint8Array(
    Float16Array.from({ length: 32 * 64 }, (_, index) => Math.sin(index)).buffer,
  );
  const { FLOAT16, FLOAT } = TensorProto_DataType;
  await writeTinyModel(path, {
    ...io,
    initializer: [
      floatInitializer("zeros", [32, 64], () => 0),
      { name: "h", dims: [32n, 64n], dataType: FLOAT16, rawData: halves },
    ],
    node: [
      node("Cast", ["x"], ["x_half"], [integerAttribute("to", FLOAT16)]),
      node("MatMul", ["x_half", "h"], ["a_half"]),
      node("Cast", ["a_half"], ["a"], [integerAttribute("to", FLOAT)]),
      node("MatMul", ["x", "zeros"], ["b"]),
      node("Add", ["a", "b"], ["y"]),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "int8-weight" });
  assert.ok(report.weights.every(({ form }) => form !== null));
  const { sqnrDb, opset } = await compareResult(path, folder.path);
  assert.equal(opset, 19);
  assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
});

test("weights that the runtime does not take from DequantizeLinear are folded", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "types.onnx");
  const to = (type: number) => [integerAttribute("to", type)];
  const { BFLOAT16, BOOL, FLOAT, FLOAT16, INT64 } = TensorProto_DataType;
  const weight = (name: string, dataType: number, bits: (single: number) => number) => ({
    name,
    dims: [64n, 64n],
    dataType,
    rawData: new Uint8Array(
      Uint16Array.from({ length: 4096 }, (_, index) => bits(Math.sin(index))).buffer,
    ),
  });
  const upperBits = (single: number) => Number(new Uint16Array(Float32Array.of(single).buffer)[1]);
  const halfBits = (single: number) => Number(new Uint16Array(Float16Array.of(single).buffer)[0]);
  const body = {
    input: [tensorInfo("i", [], INT64), tensorInfo("goOn", [], BOOL), tensorInfo("a", ["n", 64])],
    output: [tensorInfo("goesOn", [], BOOL), tensorInfo("b", ["n", 64])],
    initializer: [weight("half", FLOAT16, halfBits)],
    node: [
      node("Identity", ["goOn"], ["goesOn"]),
      node("Cast", ["a"], ["aHalf"], to(FLOAT16)),
      node("MatMul", ["aHalf", "half"], ["bHalf"]),
      node("Cast", ["bHalf"], ["b"], to(FLOAT)),
    ],
  };
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 64])],
    output: ["y", "z", "v"].map((name) => tensorInfo(name, ["n", 64])),
    initializer: [
      weight("brain", BFLOAT16, upperBits),
      floatInitializer("turned", [64, 64], (index) => Math.sin(index)),
      { name: "once", dims: [], dataType: INT64, int64Data: [1n] },
    ],
    node: [
      node("Cast", ["brain"], ["single"], to(FLOAT)),
      node("MatMul", ["x", "single"], ["y"]),
      node("Loop", ["once", "", "x"], ["z"], [graphAttribute("body", body)]),
      node("Transpose", ["turned"], ["straight"]),
      node("MatMul", ["x", "straight"], ["v"]),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "int8-weight", dequantize: "run" });
  for (const name of ["brain", "half", "turned"]) {
    assert.match(weightNamed(report, name).form ?? "", /^int8 .*, restored at load$/);
  }
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 35);
});

test("a weight that is turned for another product is not quantized with its inputs", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "turned.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", [4, 32]), tensorInfo("columns", [32, 4])],
    output: [tensorInfo("y", [4, 32]), tensorInfo("z", [32, 4])],
    initializer: [floatInitializer("w", [32, 32], (index) => Math.sin(index))],
    node: [
      node("MatMul", ["x", "w"], ["y"]),
      node("Transpose", ["w"], ["turned"]),
      node("MatMul", ["turned", "columns"], ["z"]),
    ],
  });
  const calibration = { generated: true, samples: 2 };
  const recipe = { scheme: "int8-static", fallback: "int8-weight", calibration } as const;
  await compress(path, folder.path, recipe);
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 35);
});
