import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";

/** Writes a model of one product, whose names end in a mark, until the test has ended. */
export async function writeProduct(t: TestContext, mark = ""): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "model-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "product.onnx");
  const [x, w, y] = [`x${mark}`, `w${mark}`, `y${mark}`];
  await writeTinyModel(file, {
    node: [{ ...node("MatMul", [x, w], [y]), name: `product${mark}` }],
    initializer: [floatInitializer(w, [64, 64], (index) => Math.sin(index))],
    input: [tensorInfo(x, [1, 64])],
    output: [tensorInfo(y, [1, 64])],
  });
  return file;
}
