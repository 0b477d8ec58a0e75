import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import {
  floatInitializer,
  graphAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../support/tiny-model.ts";

/** Writes a model of one product, whose names end in a mark, until the test has ended. */
export async function writeProduct(t: TestContext, mark = ""): Promise<string> {
  const file = join(await makeFolder(t), "product.onnx");
  const [x, w, y] = [`x${mark}`, `w${mark}`, `y${mark}`];
  await writeTinyModel(file, {
    node: [{ ...node("MatMul", [x, w], [y]), name: `product${mark}` }],
    initializer: [floatInitializer(w, [64, 64], (index) => Math.sin(index))],
    input: [tensorInfo(x, [1, 64])],
    output: [tensorInfo(y, [1, 64])],
  });
  return file;
}

/** Writes a model of a product, and of one more in either branch of an If, until the test has ended. */
export async function writeBranches(t: TestContext): Promise<string> {
  const file = join(await makeFolder(t), "branches.onnx");
  const weight = (name: string) => floatInitializer(name, [64, 64], (index) => Math.sin(index));
  const branch = (name: string) =>
    graphAttribute(name, {
      node: [node("MatMul", ["h", "v"], [`${name}_y`])],
      output: [tensorInfo(`${name}_y`, [1, 64])],
    });
  await writeTinyModel(file, {
    node: [
      node("MatMul", ["x", "w"], ["h"]),
      node("If", ["c"], ["y"], [branch("then_branch"), branch("else_branch")]),
    ],
    initializer: [weight("w"), weight("v")],
    input: [tensorInfo("x", [1, 64]), tensorInfo("c", [], TensorProto_DataType.BOOL)],
    output: [tensorInfo("y", [1, 64])],
  });
  return file;
}

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "model-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}
