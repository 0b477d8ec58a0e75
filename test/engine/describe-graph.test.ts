import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { describeOriginal } from "../../src/engine/describe-original.ts";
import { inferGraphTypes } from "../../src/engine/infer-graph-types.ts";
import { AttributeProto_AttributeType } from "../../src/engine/onnx/onnx_pb.js";
import { planCompression } from "../../src/engine/plan-compression.ts";
import {
  floatInitializer,
  graphAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../support/tiny-model.ts";

test("a description names the original's nodes, what they take and their weights", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "graph-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  const branch = (name: string, opType: string) =>
    graphAttribute(name, {
      node: [node(opType, ["h", "v"], [`${name}_out`])],
      output: [tensorInfo(`${name}_out`, [1, 64])],
    });
  const permutation = {
    name: "perm",
    type: AttributeProto_AttributeType.INTS,
    ints: [1n, 0n],
  };
  const weight = (name: string) => floatInitializer(name, [64, 64], (index) => Math.sin(index));
  await writeTinyModel(file, {
    node: [
      { ...node("Transpose", ["w"], ["wt"], [permutation]), name: "turn" },
      { ...node("MatMul", ["x", "wt"], ["h"]), name: "product" },
      node("If", ["c"], ["y"], [branch("then_branch", "MatMul"), branch("else_branch", "Gemm")]),
      node("Add", ["y", "h"], ["z"]),
    ],
    initializer: [weight("w"), weight("v")],
    input: [tensorInfo("x", [1, 64]), tensorInfo("c", [], 9)],
    output: [tensorInfo("z", [1, 64])],
  });
  const [target] = builtinTargets;
  assert(target);
  const plan = await planCompression(file, { kind: "quantize", recipe: defaultRecipe, target });
  assert.deepEqual(
    plan.weights.map(({ weight: { name } }) => name),
    ["w", "v"],
  );
  const reported = plan.weights.map(({ weight }) => weight);
  const graph = await describeOriginal(file, "cpu", reported, Number.MAX_SAFE_INTEGER);
  const { nodes, values, inputs, outputs } = graph;
  const nameOf = (position: number | null) => values[position ?? -1]?.name;
  assert.deepEqual(
    nodes.map(({ name, opType, weights, ...node }) => {
      const takes = node.inputs.map(nameOf);
      return [name, opType, takes, node.captured.map(nameOf), node.outputs.map(nameOf), weights];
    }),
    [
      ["turn", "Transpose", ["w"], [], ["wt"], []],
      ["product", "MatMul", ["x", "wt"], [], ["h"], [0]],
      ["y", "If", ["c"], ["h"], ["y"], [1]],
      ["z", "Add", ["y", "h"], [], ["z"], []],
    ],
  );
  assert.deepEqual(nodes[0]?.attributes, [{ name: "perm", value: "1, 0" }]);
  assert.deepEqual([inputs.map(nameOf), outputs.map(nameOf)], [["x", "c"], ["z"]]);
  const typeOf = (name: string) => values.find((value) => value.name === name)?.type;
  assert.deepEqual(["w", "x", "c", "h"].map(typeOf), [
    "float32[64,64]",
    "float32[1,64]",
    "bool[]",
    null,
  ]);
  const branches = nodes[2]?.subgraphs ?? [];
  assert.deepEqual(
    branches.map((part) => [
      part.name,
      part.inputs.map((each) => part.values[each]?.name),
      part.outputs.map((each) => part.values[each]?.type),
      part.nodes.map(({ opType, weights }) => [opType, weights]),
    ]),
    [
      ["then_branch", ["h"], ["float32[1,64]"], [["MatMul", [1]]]],
      ["else_branch", ["h"], ["float32[1,64]"], [["Gemm", [1]]]],
    ],
  );
  const scratch = { scratchDirectory: folder, threads: 1, signal: t.signal };
  const typed = await inferGraphTypes(graph, file, "cpu", scratch);
  assert.deepEqual(
    typed.values.map(({ name, type }) => [name, type]),
    [
      ["w", "float32[64,64]"],
      ["wt", "float32[64,64]"],
      ["x", "float32[1,64]"],
      ["h", "float32[1,64]"],
      ["c", "bool[]"],
      ["y", "float32[1,64]"],
      ["z", "float32[1,64]"],
    ],
  );
});
