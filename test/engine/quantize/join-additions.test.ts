import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { TensorProto_DataType as DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { joinAdditions } from "../../../src/engine/quantize/join-additions.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { makeFolder } from "./compress.ts";

function integers(name: string, values: readonly number[]) {
  const rawData = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  return { name, dims: [BigInt(values.length)], dataType: DataType.INT64, rawData };
}

const shapeOf = node("Shape", ["x"], ["shape"]);
const reshaped = node("Reshape", ["x", "target"], ["data"]);
const composed = [node("Concat", ["batch", "rest"], ["target"]), reshaped];

const cases: [what: string, nodes: ReturnType<typeof node>[], operators: string[]][] = [
  ["flattened data", [node("Flatten", ["x"], ["data"])], ["Flatten", "Gemm"]],
  ["data of two dimensions", [node("Reshape", ["x", "two"], ["data"])], ["Reshape", "Gemm"]],
  [
    "a shape that takes a number of another",
    [
      shapeOf,
      node("Gather", ["shape", "first"], ["number"]),
      node("Cast", ["number"], ["batch"]),
      ...composed,
    ],
    ["Shape", "Gather", "Cast", "Concat", "Reshape", "Gemm"],
  ],
  [
    "a shape that takes two numbers of another",
    [shapeOf, node("Gather", ["shape", "two"], ["batch"]), ...composed],
    ["Shape", "Gather", "Concat", "Reshape", "MatMul", "Add"],
  ],
  [
    "a shape that takes the end of another",
    [shapeOf, node("Slice", ["shape", "first", "rest"], ["batch"]), ...composed],
    ["Shape", "Slice", "Concat", "Reshape", "MatMul", "Add"],
  ],
  [
    "data of three dimensions",
    [node("Reshape", ["x", "three"], ["data"])],
    ["Reshape", "MatMul", "Add"],
  ],
  ["data of unknown dimensions", [node("Relu", ["x"], ["data"])], ["Relu", "MatMul", "Add"]],
];

for (const [what, nodes, operators] of cases) {
  test(`a product of ${what} and an addition become ${operators.at(-1)}`, async () => {
    await using folder = await makeFolder();
    const file = join(folder.path, "model.onnx");
    await writeTinyModel(file, {
      node: [
        ...nodes,
        { ...node("MatMul", ["data", "matrix"], ["product"]), name: "head" },
        node("Add", ["product", "bias"], ["y"]),
      ],
      input: [tensorInfo("x", ["batch", 2, 4])],
      output: [tensorInfo("y", ["batch", 3])],
      initializer: [
        floatInitializer("matrix", [8, 3], () => 1),
        floatInitializer("bias", [3], () => 1),
        integers("two", [0, -1]),
        integers("three", [0, 1, -1]),
        integers("first", [0]),
        integers("rest", [-1]),
      ],
    });
    const model = await openModel(file, 2 ** 20);
    const { graph } = model.proto;
    assert.ok(graph);
    joinAdditions(model, graph);
    assert.deepEqual(
      graph.node.map(({ opType }) => opType),
      operators,
    );
    const product = graph.node.find(({ name }) => name === "head");
    assert.deepEqual(product?.output, [operators.includes("Gemm") ? "y" : "product"]);
  });
}

test("a product of integers and an addition stay as they are", async () => {
  await using folder = await makeFolder();
  const file = join(folder.path, "model.onnx");
  await writeTinyModel(file, {
    node: [
      node("Flatten", ["x"], ["data"]),
      node("MatMul", ["data", "matrix"], ["product"]),
      node("Add", ["product", "bias"], ["y"]),
    ],
    input: [tensorInfo("x", ["batch", 2], DataType.INT64)],
    output: [tensorInfo("y", ["batch", 3], DataType.INT64)],
    initializer: [
      { ...integers("matrix", [1, 2, 3, 4, 5, 6]), dims: [2n, 3n] },
      integers("bias", [1, 2, 3]),
    ],
  });
  const model = await openModel(file, 2 ** 20);
  const { graph } = model.proto;
  assert.ok(graph);
  joinAdditions(model, graph);
  const operators = graph.node.map(({ opType }) => opType);
  assert.deepEqual(operators, ["Flatten", "MatMul", "Add"]);
});
