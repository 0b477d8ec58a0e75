import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findTarget, resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { predictCompression } from "../../../src/engine/compress-model.ts";
import { writeLayeredModel } from "../../support/layered-model.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compress, makeFolder, weightNamed } from "./compress.ts";

test("overrides say the granularity of weights, and which stay as they are", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "overrides-"));
  t.after(() => rm(folder, { recursive: true }));
  const model = join(folder, "layered.onnx");
  await writeLayeredModel(model);
  const { weights } = await predictCompression(model, {
    kind: "quantize",
    target: findTarget(builtinTargets, "cpu"),
    recipe: resolveRecipe({
      scheme: "int4-weight",
      dequantize: "load-only",
      overrides: [
        { match: "bad", scheme: "none" },
        { match: "last", scheme: "int8-weight", granularity: "channel" },
        { match: "*", scheme: "int4-weight", blockSize: 16 },
      ],
    }),
    log: () => undefined,
  });
  assert.deepEqual(
    weights.map(({ name, form, reason }) => [name, form, reason]),
    [
      [
        "first",
        "int4 with a scale for each 16 inputs of an output, restored at load",
        'is to be int4-weight: "first" matches "*"',
      ],
      ["bad", null, "is to stay as it is by the recipe's overrides"],
      [
        "last",
        "int8 with a scale for each slice of axis 1, restored at load",
        'is to be int8-weight: "last" matches "last"',
      ],
    ],
  );
});

test("an override that raises the opset leaves the others in half precision", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "original.onnx");
  const content = (index: number) => Math.sin(index * index);
  await writeTinyModel(
    model,
    {
      input: [tensorInfo("x", [4, 64])],
      output: [tensorInfo("y", [4, 32])],
      initializer: [
        floatInitializer("first", [64, 64], content),
        floatInitializer("second", [64, 32], content),
      ],
      node: [
        node("MatMul", ["x", "first"], ["a"]),
        node("Softmax", ["a"], ["b"]),
        node("Add", ["a", "b"], ["c"]),
        node("MatMul", ["c", "second"], ["y"]),
      ],
    },
    { opset: 12 },
  );
  const second = { match: "second", scheme: "int8-weight", granularity: "block" } as const;
  const report = await compress(model, folder.path, { scheme: "fp16", overrides: [second] });
  assert.equal(weightNamed(report, "first").form, "float16");
  assert.match(weightNamed(report, "second").form ?? "", /^int8 with a scale for each 32/);
  const sqnrDb = await measureSqnrDb(model, join(folder.path, "model.onnx"));
  assert.ok(sqnrDb > 35, `${sqnrDb} dB`);
});
