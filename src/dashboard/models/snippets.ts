import type { ModelInterface } from "./load-interface.ts";

/** Programs that load a result and run it once on zeros. */
export const snippets = { Python: writePython, JavaScript: writeJavaScript } as const;

type ModelValue = ModelInterface["inputs"][number];

function writePython({ inputs, outputs }: ModelInterface): string {
  const feeds = inputs.map(
    (input) =>
      `    ${quote(input.name)}: np.zeros(${toTuple(readDims(input))}, dtype=${toNumpy(input)}),`,
  );
  return [
    "import numpy as np",
    "import onnxruntime as ort",
    "",
    'session = ort.InferenceSession("model.onnx")',
    "# Dimensions that vary are 1 here: give them your own.",
    "outputs = session.run(None, {",
    ...feeds,
    "})",
    `for name, value in zip([${outputs.map(({ name }) => quote(name)).join(", ")}], outputs):`,
    "    print(name, value.shape)",
  ].join("\n");
}

function writeJavaScript({ inputs, outputs }: ModelInterface): string {
  const feeds = inputs.map((input) => {
    const dims = readDims(input);
    const count = dims.reduce((product, dim) => product * dim, 1);
    const [type, array] = toTensor(input);
    const tensor = `new ort.Tensor("${type}", new ${array}(${count}), [${dims.join(", ")}])`;
    return `  ${quote(input.name)}: ${tensor},`;
  });
  return [
    'import * as ort from "onnxruntime-node"; // in browsers "onnxruntime-web"',
    "",
    'const session = await ort.InferenceSession.create("model.onnx");',
    "// Dimensions that vary are 1 here: give them your own.",
    "const outputs = await session.run({",
    ...feeds,
    "});",
    ...outputs.map(({ name }) => `console.log(outputs[${quote(name)}].dims);`),
  ].join("\n");
}

function quote(name: string): string {
  return JSON.stringify(name);
}

/** Dimensions that vary are 1. */
function readDims({ type }: ModelValue): number[] {
  const text = /\[(?<dims>[^\]]*)\]$/.exec(type)?.groups?.["dims"] ?? "";
  if (text === "") return [];
  return text.split(",").map((dim) => (/^\d+$/.test(dim) ? Number(dim) : 1));
}

function toTuple(dims: readonly number[]): string {
  return dims.length === 1 ? `(${dims.join()},)` : `(${dims.join(", ")})`;
}

function readElement({ type }: ModelValue): string {
  return type.split("[", 1)[0] ?? "";
}

function toNumpy(value: ModelValue): string {
  const element = readElement(value);
  if (element === "string") return "object";
  return element === "bool" ? "np.bool_" : `np.${element}`;
}

const tensors: Readonly<Record<string, readonly [string, string]>> = {
  float32: ["float32", "Float32Array"],
  float64: ["float64", "Float64Array"],
  float16: ["float16", "Uint16Array"],
  int64: ["int64", "BigInt64Array"],
  uint64: ["uint64", "BigUint64Array"],
  int32: ["int32", "Int32Array"],
  uint32: ["uint32", "Uint32Array"],
  int16: ["int16", "Int16Array"],
  uint16: ["uint16", "Uint16Array"],
  int8: ["int8", "Int8Array"],
  uint8: ["uint8", "Uint8Array"],
  bool: ["bool", "Uint8Array"],
};

function toTensor(value: ModelValue): readonly [string, string] {
  return tensors[readElement(value)] ?? [readElement(value), "Array"];
}
