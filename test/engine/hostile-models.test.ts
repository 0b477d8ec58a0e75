import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ServiceError } from "../../src/contract/errors.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { openModel } from "../../src/engine/onnx/open-model.ts";
import { planCompression } from "../../src/engine/plan-compression.ts";
import { encodeHostile, hostileModels } from "./fuzz/hostile-models.ts";
import { contribTarget, makeFolder } from "./quantize/compress.ts";

/** An algorithm that is quadratic takes minutes for models of this size. */
const limit = { timeout: 120_000 };

for (const name of Object.keys(hostileModels)) {
  test(`a model with ${name} is opened and planned, or refused`, limit, async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "model.onnx");
    await writeFile(path, encodeHostile(name, 40_000));
    await openModel(path, 2 ** 40);
    for (const scheme of ["int8-weight", "fp16"] as const) {
      const recipe = resolveRecipe({ scheme });
      const planned = planCompression(path, { kind: "compress", recipe, target: contribTarget });
      await planned.catch((error: unknown) =>
        assert.ok(error instanceof ServiceError, String(error)),
      );
    }
  });
}

test("functions that stand for more than can be opened again are refused", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "model.onnx");
  await writeFile(path, encodeHostile("calls of a function with a large attribute", 1500));
  const request = { kind: "compress", recipe: resolveRecipe({ scheme: "int8-weight" }) } as const;
  const planned = planCompression(path, { ...request, target: contribTarget });
  const message = /has more than 3000000 fields/;
  await assert.rejects(planned, { code: "model_unsupported", message });
});

const beyondLimits: [name: string, size: number, message: RegExp][] = [
  ["a node with many inputs", 3_000_000 / 4, /has more than 3000000 fields/],
  ["a chain of Identity", 100_000, /has more than 100000 nodes and tensors/],
];
for (const [name, size, message] of beyondLimits) {
  test(`${name}: too many are refused, with the limit`, async () => {
    await using folder = await makeFolder();
    const path = join(folder.path, "model.onnx");
    await writeFile(path, encodeHostile(name, size));
    const opening = openModel(path, 2 ** 40);
    await assert.rejects(opening, { code: "model_unsupported", message });
  });
}
