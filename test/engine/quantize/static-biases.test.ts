import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { writeFloatsNpz } from "../../support/npz.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { compress, measureSqnrDb } from "../calibrate/compress-calibrated.ts";
import { makeFolder, weightNamed } from "./compress.ts";

const calibration = { data: "file:///samples.npz", samples: 8 } as const;
const normal = createNormal(createRandom(5));

/** A product with a number added to its fourth output, beside another product, and samples. */
async function compressProduct(folder: string, own: number, recipe: PartialRecipe = {}) {
  const model = join(folder, "original.onnx");
  await writeTinyModel(model, {
    node: [node("Gemm", ["x", "matrix", "bias"], ["y"]), node("MatMul", ["x", "other"], ["z"])],
    input: [tensorInfo("x", [4, 64])],
    output: [tensorInfo("y", [4, 32]), tensorInfo("z", [4, 32])],
    initializer: [
      floatInitializer("matrix", [64, 32], normal),
      floatInitializer("other", [64, 32], normal),
      floatInitializer("bias", [32], (index) => (index === 3 ? own : normal())),
    ],
  });
  const values = Array.from({ length: 8 * 4 * 64 }, normal);
  const data = await writeFloatsNpz(folder, "x", { shape: [8, 4, 64], values });
  const static8 = { scheme: "int8-static", calibration, ...recipe } as const;
  const report = await compress(model, folder, { recipe: static8, data });
  return {
    weight: weightNamed(report, "matrix"),
    sqnrDb: await measureSqnrDb(model, folder, data),
  };
}

test("a bias that masks an output with an infinity leaves the product as it is", async () => {
  await using folder = await makeFolder();
  const { weight, sqnrDb } = await compressProduct(folder.path, -Infinity);
  assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
  assert.deepEqual([weight.form, weight.reason], [null, "is beside a bias that is not finite"]);
});

test("a bias that masks an output does not take the others' codes by their only scale", async () => {
  await using folder = await makeFolder();
  const { weight } = await compressProduct(folder.path, -1e9, { granularity: "tensor" });
  const reason = "has one scale, which is too small for its bias";
  assert.deepEqual([weight.form, weight.reason], [null, reason]);
});

test("a bias that masks an output keeps the others' codes where each has a scale", async () => {
  await using folder = await makeFolder();
  const { weight } = await compressProduct(folder.path, -1e9);
  assert.match(weight.form ?? "", /by calibration$/);
});
