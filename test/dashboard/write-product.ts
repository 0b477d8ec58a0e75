import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";

/** Writes a model of one product, until the test has ended. @returns its file */
export async function writeProduct(t: TestContext, name = "product.onnx"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "model-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, name);
  await writeTinyModel(file, {
    node: [node("MatMul", ["x", "w"], ["y"])],
    initializer: [floatInitializer("w", [64, 64], (index) => Math.sin(index))],
    input: [tensorInfo("x", [1, 64])],
    output: [tensorInfo("y", [1, 64])],
  });
  return file;
}
