import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { TensorProto_DataLocation, TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import { externalFiles } from "../../test/support/external-model.ts";
import { node, tensorInfo, writeTinyModel } from "../../test/support/tiny-model.ts";

const width = 2048;
const weightBytes = width * width * 4;

/** Writes a model of about so many bytes of random weights, in two files beside it. @returns its files */
export async function writeLargeModel(folder: string, bytes: number): Promise<string[]> {
  const layers = Math.max(2, Math.round(bytes / weightBytes));
  const indexes = Array.from({ length: layers }, (_, i) => i);
  const perFile = Math.ceil(layers / externalFiles.length);
  const placeOf = (layer: number) => {
    const location = externalFiles[Math.floor(layer / perFile)] ?? externalFiles[0];
    return { location, offset: (layer % perFile) * weightBytes };
  };
  const content = new Float32Array(width * width);
  for (const [i, name] of externalFiles.entries()) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await using file = await open(join(folder, name), "w");
    const count = Math.min(perFile, layers - i * perFile);
    for (let written = 0; written < count; written++) {
      for (let at = 0; at < content.length; at++) content[at] = Math.random() - 0.5;
      await file.write(new Uint8Array(content.buffer));
    }
  }
  await writeTinyModel(join(folder, "net.onnx"), {
    input: [tensorInfo("h0", [1, width])],
    output: [tensorInfo(`h${layers}`, [1, width])],
    initializer: indexes.map((layer) => externalTensor(`w${layer}`, placeOf(layer))),
    node: indexes.map((layer) => node("MatMul", [`h${layer}`, `w${layer}`], [`h${layer + 1}`])),
  });
  return ["net.onnx", ...externalFiles];
}

function externalTensor(name: string, { location, offset }: { location: string; offset: number }) {
  const place = { location, offset, length: weightBytes };
  return {
    name,
    dims: [BigInt(width), BigInt(width)],
    dataType: TensorProto_DataType.FLOAT,
    dataLocation: TensorProto_DataLocation.EXTERNAL,
    externalData: Object.entries(place).map(([key, value]) => ({ key, value: String(value) })),
  };
}
