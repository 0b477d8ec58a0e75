import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import {
  AttributeProto_AttributeType,
  TensorProto_DataType as DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { pythonMissing } from "../../support/python.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import type { RealModelName } from "../../support/real-models.ts";
import {
  graphAttribute,
  integerAttribute,
  node,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compareInPython, compareResult, compress, makeFolder, weightNamed } from "./compress.ts";

const models = [
  "minilm",
  "ocr-recognition",
  "ocr-recognition-v6",
  "voice-without-if",
  "page-orientation",
] as const satisfies readonly RealModelName[];

interface BlockScheme {
  readonly what: string;
  readonly recipe: PartialRecipe;
  readonly operator: string;
  /** Least SQNR of outputs on noise of each model, dB. */
  readonly least: readonly number[];
}

const schemes: readonly BlockScheme[] = [
  {
    what: "int4 for MatMulNBits",
    recipe: { scheme: "int4-weight", operators: "contrib" },
    operator: "MatMulNBits",
    least: [7.8, 13, 10.8, 6.9, 21.4],
  },
  {
    what: "int4 with zero points",
    recipe: { scheme: "int4-weight", operators: "contrib", symmetric: false },
    operator: "MatMulNBits",
    least: [8.8, 26.4, 19.3, 15.4, 27.8],
  },
  {
    what: "int4 in standard operators",
    recipe: { scheme: "int4-weight", symmetric: false },
    operator: "DequantizeLinear",
    least: [8.8, 26.3, 19.3, 15.4, 27.8],
  },
  {
    what: "int8 blocks",
    recipe: { scheme: "int8-weight", granularity: "block", operators: "contrib" },
    operator: "MatMulNBits",
    least: [28.4, 16.8, 22.1, 57.7, 21.6],
  },
  {
    what: "int8 blocks in standard operators",
    recipe: { scheme: "int8-weight", granularity: "block" },
    operator: "DequantizeLinear",
    least: [23.5, 16.7, 21.8, 57.7, 21.6],
  },
];

const missing =
  (await Promise.all(models.map(realModelMissing))).find((reason) => reason !== false) ?? false;
for (const { what, recipe, operator, least } of schemes) {
  const skip = pythonMissing || missing;
  test(
    `${what}: five real models pass the checker and stay close to the originals`,
    { skip },
    async () => {
      await using folder = await makeFolder();
      const pairs = [];
      for (const name of models) {
        const directory = join(folder.path, name);
        await mkdir(directory);
        const report = await compress(realModel(name), directory, {
          ...recipe,
          fallback: "int8-weight",
        });
        assert.ok(report.resultBytes < 0.5 * report.originalBytes);
        pairs.push([realModel(name), join(directory, "model.onnx")] as const);
      }
      const comparisons = await compareInPython(pairs);
      for (const [index, { sqnrDb }] of comparisons.entries()) {
        assert.ok(sqnrDb >= Number(least[index]), `${models[index]}: ${sqnrDb} dB`);
      }
      const [minilm, ...others] = comparisons.map(({ operators }) => operators[operator] ?? 0);
      assert.ok((minilm ?? 0) > 0, "MiniLM has none of the scheme's operators");
      if (operator === "MatMulNBits") assert.ok(others.every((count) => count > 0));
    },
  );
}

test(
  "a tied embedding and blocks that do not divide the weight are held",
  { skip: pythonMissing },
  async () => {
    for (const symmetric of [true, false]) {
      await using folder = await makeFolder();
      const path = join(folder.path, "ragged.onnx");
      await writeTinyModel(path, {
        input: [tensorInfo("ids", ["n"], DataType.INT64)],
        output: [tensorInfo("y", ["n", 24])],
        initializer: [
          floatInitializer("table", [1000, 42], (index) => Math.sin(index)),
          floatInitializer("w", [42, 70], (index) => Math.cos(index * index)),
          floatInitializer("g", [24, 70], (index) => Math.sin(index * index)),
          floatInitializer("c", [24], (index) => index / 100),
        ],
        node: [
          node("Gather", ["table", "ids"], ["rows"]),
          node("MatMul", ["rows", "w"], ["hidden"]),
          node("Gemm", ["hidden", "g", "c"], ["y"], [integerAttribute("transB", 1)]),
        ],
      });
      const report = await compress(path, folder.path, {
        scheme: "int8-weight",
        granularity: "block",
        blockSize: 16,
        operators: "contrib",
        symmetric,
      });
      assert.ok(
        ["table", "w", "g"].every((name) => weightNamed(report, name).form?.includes("int8")),
      );
      const { operators, sqnrDb } = await compareResult(path, folder.path);
      assert.deepEqual([operators["GatherBlockQuantized"], operators["MatMulNBits"]], [1, 2]);
      assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
    }
  },
);

test(
  "a Gemm with a transposed weight has blocks in standard operators too",
  { skip: pythonMissing },
  async () => {
    for (const recipe of [
      { scheme: "int8-weight", granularity: "block", symmetric: true },
      { scheme: "int8-weight", granularity: "block", symmetric: false },
      { scheme: "int4-weight", symmetric: true },
      { scheme: "int4-weight", symmetric: false },
    ] as const) {
      await using folder = await makeFolder();
      const path = join(folder.path, "gemm.onnx");
      await writeTinyModel(path, {
        input: [tensorInfo("x", ["n", 62])],
        output: [tensorInfo("y", ["n", 24])],
        initializer: [floatInitializer("w", [24, 62], (index) => Math.cos(index * index))],
        node: [node("Gemm", ["x", "w"], ["y"], [integerAttribute("transB", 1)])],
      });
      const report = await compress(path, folder.path, recipe);
      assert.match(weightNamed(report, "w").form ?? "", /with a scale for each 32 inputs/);
      const { sqnrDb, opset } = await compareResult(path, folder.path);
      assert.equal(opset, 21);
      assert.ok(sqnrDb > (recipe.scheme === "int8-weight" ? 38 : 14), `${sqnrDb} dB`);
    }
  },
);

test("a weight in blocks keeps its axes of size 1", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "squeezed.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 100])],
    output: [tensorInfo("y", ["n", 64])],
    initializer: [
      floatInitializer("w", [1, 100, 64], (index) => Math.cos(index * index)),
      { name: "axes", dims: [1n], dataType: DataType.INT64, int64Data: [0n] },
    ],
    node: [node("Squeeze", ["w", "axes"], ["m"]), node("MatMul", ["x", "m"], ["y"])],
  });
  const report = await compress(path, folder.path, { scheme: "int4-weight" });
  assert.match(weightNamed(report, "w").form ?? "", /^int4 with a scale for each 32 inputs/);
  const { sqnrDb } = await compareResult(path, folder.path);
  assert.ok(sqnrDb > 14, `${sqnrDb} dB`);
});

test("the factors of a Gemm have the type of its weight", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "bfloat16.onnx");
  const alpha = { name: "alpha", type: AttributeProto_AttributeType.FLOAT, f: 0.5 };
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 64], DataType.BFLOAT16)],
    output: [tensorInfo("y", ["n", 64], DataType.BFLOAT16)],
    initializer: [
      {
        name: "w",
        dims: [64n, 64n],
        dataType: DataType.BFLOAT16,
        rawData: new Uint8Array(64 * 64 * 2).fill(0x3f),
      },
    ],
    node: [node("Gemm", ["x", "w"], ["y"], [alpha])],
  });
  await compress(path, folder.path, { scheme: "int4-weight", operators: "contrib" });
  const { proto } = await openModel(join(folder.path, "model.onnx"), 2 ** 20);
  const factor = proto.graph?.initializer.find(({ name }) => name === "y_alpha");
  assert.equal(factor?.dataType, DataType.BFLOAT16);
  assert.deepEqual([...factor.rawData], [0x00, 0x3f]);
});

test("a product in half precision within a Loop is not 0", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "half.onnx");
  const to = (type: number) => [integerAttribute("to", type)];
  const body = {
    input: [
      tensorInfo("i", [], DataType.INT64),
      tensorInfo("goOn", [], DataType.BOOL),
      tensorInfo("a", ["n", 64]),
    ],
    output: [tensorInfo("goesOn", [], DataType.BOOL), tensorInfo("b", ["n", 64])],
    node: [
      node("Identity", ["goOn"], ["goesOn"]),
      node("Cast", ["a"], ["half"], to(DataType.FLOAT16)),
      node("LeakyRelu", ["half"], ["left"]),
      node("MatMul", ["left", "w"], ["product"]),
      node("LeakyRelu", ["product"], ["result"]),
      node("Cast", ["result"], ["b"], to(DataType.FLOAT)),
    ],
  };
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 64])],
    output: [tensorInfo("y", ["n", 64])],
    initializer: [
      {
        name: "w",
        dims: [64n, 64n],
        dataType: DataType.FLOAT16,
        rawData: new Uint8Array(
          Float16Array.from({ length: 4096 }, (_, index) => Math.sin(index)).buffer,
        ),
      },
      { name: "once", dims: [], dataType: DataType.INT64, int64Data: [1n] },
    ],
    node: [node("Loop", ["once", "", "x"], ["y"], [graphAttribute("body", body)])],
  });
  const recipe = { scheme: "int8-weight", granularity: "block", operators: "contrib" } as const;
  const report = await compress(path, folder.path, recipe);
  assert.match(weightNamed(report, "w").form ?? "", /, for MatMulNBits$/);
  assert.ok((await measureSqnrDb(path, join(folder.path, "model.onnx"))) > 35);
});

test("no operator of ONNX Runtime's takes blocks in float64", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "double.onnx");
  const to = (type: number) => [integerAttribute("to", type)];
  await writeTinyModel(path, {
    input: [tensorInfo("ids", ["n"], DataType.INT64)],
    output: [tensorInfo("y", ["n", 32])],
    initializer: [
      floatInitializer("table", [1000, 64], (index) => Math.sin(index)),
      floatInitializer("w", [64, 32], (index) => Math.cos(index * index)),
    ],
    node: [
      node("Cast", ["table"], ["wideTable"], to(DataType.DOUBLE)),
      node("Gather", ["wideTable", "ids"], ["rows"]),
      node("Cast", ["w"], ["wide"], to(DataType.DOUBLE)),
      node("MatMul", ["rows", "wide"], ["product"]),
      node("Cast", ["product"], ["y"], to(DataType.FLOAT)),
    ],
  });
  const report = await compress(path, folder.path, { scheme: "int4-weight", operators: "contrib" });
  for (const name of ["table", "w"]) assert.match(weightNamed(report, name).form ?? "", /^int4/);
  const { operators, sqnrDb } = await compareResult(path, folder.path);
  assert.deepEqual(
    [operators["GatherBlockQuantized"], operators["MatMulNBits"]],
    [undefined, undefined],
  );
  assert.ok(sqnrDb > 12, `${sqnrDb} dB`);
});

test("recipes that no format can hold are refused", async () => {
  await using folder = await makeFolder();
  for (const recipe of [
    { scheme: "int4-weight", granularity: "channel" },
    { scheme: "int8-dynamic", granularity: "block" },
  ] as const) {
    await assert.rejects(compress(realModel("ocr-recognition"), folder.path, recipe), {
      code: "recipe_unsupported",
      message: /and may have "/,
    });
  }
});
