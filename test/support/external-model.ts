import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { TensorProto_DataLocation, TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import { node, tensorInfo, writeTinyModel } from "./tiny-model.ts";

/** Files of external data of the model, by their paths below its folder. */
export const externalFiles = ["first.data", "parts/second.data"] as const;

/** Writes a model of two layers, each with its weight in a file of its own. @returns its path */
export async function writeExternalModel(folder: string, width = 64): Promise<string> {
  await mkdir(path.join(folder, "parts"), { recursive: true });
  for (const [seed, name] of externalFiles.entries()) {
    const weights = Float32Array.from({ length: width * width }, (_, i) =>
      Math.sin((i + 1) * (seed + 1)),
    );
    await writeFile(path.join(folder, name), new Uint8Array(weights.buffer));
  }
  const file = path.join(folder, "net.onnx");
  const [first, second] = externalFiles;
  await writeTinyModel(file, {
    input: [tensorInfo("x", [1, width])],
    output: [tensorInfo("y", [1, width])],
    initializer: [externalTensor("w1", first, width), externalTensor("w2", `./${second}`, width)],
    node: [node("MatMul", ["x", "w1"], ["h"]), node("MatMul", ["h", "w2"], ["y"])],
  });
  return file;
}

export function externalTensor(name: string, location: string, width: number) {
  return {
    name,
    dims: [BigInt(width), BigInt(width)],
    dataType: TensorProto_DataType.FLOAT,
    dataLocation: TensorProto_DataLocation.EXTERNAL,
    externalData: [{ key: "location", value: location }],
  };
}

export async function hashTestFile(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}
