import path from "node:path";
import { node, tensorInfo, floatInitializer, writeTinyModel } from "../support/tiny-model.ts";

/** Writes a model into a workspace that is compressed within seconds; models of different seeds are different files. */
export async function writeWorkspaceModel(
  workspace: string,
  file: string,
  seed = 1,
): Promise<void> {
  const [inner, outer] = [64, 32];
  await writeTinyModel(path.join(workspace, file), {
    input: [tensorInfo("x", ["batch", inner])],
    output: [tensorInfo("y", ["batch", outer])],
    initializer: [floatInitializer("w", [inner, outer], (i) => Math.sin(i * 12.9898 + seed))],
    node: [node("MatMul", ["x", "w"], ["y"])],
  });
}
