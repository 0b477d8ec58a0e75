import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { planCompression } from "../../src/engine/plan-compression.ts";
import {
  floatInitializer,
  graphAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../support/tiny-model.ts";

test("a plan names the original's nodes, what they take and their weights", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "graph-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  const branch = (name: string, opType: string) =>
    graphAttribute(name, {
      node: [node(opType, ["h", "v"], [`${name}_out`])],
      output: [tensorInfo(`${name}_out`, [1, 64])],
    });
  const weight = (name: string) => floatInitializer(name, [64, 64], (index) => Math.sin(index));
  await writeTinyModel(file, {
    node: [
      { ...node("Transpose", ["w"], ["wt"]), name: "turn" },
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
  assert.deepEqual(plan.nodes, [
    { name: "turn", opType: "Transpose", inputs: [], weights: [] },
    { name: "product", opType: "MatMul", inputs: [0], weights: [0] },
    { name: "y", opType: "If", inputs: [1], weights: [1] },
    { name: "z", opType: "Add", inputs: [2, 1], weights: [] },
  ]);
});
