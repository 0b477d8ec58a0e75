import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findTarget, resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { predictCompression } from "../../../src/engine/compress-model.ts";
import { writeLayeredModel } from "../../support/layered-model.ts";

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
