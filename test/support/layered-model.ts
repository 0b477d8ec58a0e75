import { floatInitializer, node, tensorInfo, writeTinyModel } from "./tiny-model.ts";

/** Three products one after the other; the second one's weight suffers most from rounding. */
export async function writeLayeredModel(path: string): Promise<void> {
  const noise = (index: number) => Math.sin(index * 12.9898 + index * index * 0.37);
  // A large value in each row leaves few codes to the others of its block and of its column.
  const outlier = (index: number) => (index % 65 === 0 ? 40 : 0);
  await writeTinyModel(path, {
    node: [
      node("MatMul", ["x", "first"], ["a"]),
      node("Tanh", ["a"], ["b"]),
      node("MatMul", ["b", "bad"], ["c"]),
      node("Tanh", ["c"], ["d"]),
      node("MatMul", ["d", "last"], ["y"]),
    ],
    input: [tensorInfo("x", ["rows", 64])],
    output: [tensorInfo("y", ["rows", 64])],
    initializer: [
      floatInitializer("first", [64, 64], (index) => 0.1 * noise(index)),
      floatInitializer("bad", [64, 64], (index) => 0.1 * noise(index + 7) + outlier(index)),
      floatInitializer("last", [64, 64], (index) => 0.1 * noise(index + 3)),
    ],
  });
}
