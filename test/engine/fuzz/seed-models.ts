import { readFile } from "node:fs/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType as AttributeType,
  ModelProtoSchema,
  TensorProto_DataLocation as DataLocation,
  TensorProto_DataType as DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import type {
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
  TensorProtoSchema,
} from "../../../src/engine/onnx/onnx_pb.js";
import { realModel } from "../../support/real-models.ts";
import {
  integerAttribute,
  node,
  graphAttribute,
  tensorInfo,
  floatInitializer,
} from "../../support/tiny-model.ts";

type Graph = Exclude<MessageInitShape<typeof GraphProtoSchema>, { $typeName: string }>;
type Functions = MessageInitShape<typeof FunctionProtoSchema>[];
type Tensor = MessageInitShape<typeof TensorProtoSchema>;

/** File beside each mutated model that external data may refer to, and its size. */
export const externalFile = { name: "weights.bin", bytes: 65_536 } as const;

function encode(opset: number, graph: Graph, functions: Functions = []): Uint8Array {
  const model = create(ModelProtoSchema, {
    irVersion: opset >= 21 ? 10n : 8n,
    opsetImport: [
      { domain: "", version: BigInt(opset) },
      { domain: "local", version: 1n },
    ],
    functions,
    graph: { name: "seed", ...graph },
  });
  return toBinary(ModelProtoSchema, model);
}

function wave(name: string, dims: readonly number[]): Tensor {
  return floatInitializer(name, dims, (index) => Math.sin(index));
}

function constant(t: Tensor): MessageInitShape<typeof AttributeProtoSchema> {
  return { name: "value", type: AttributeType.TENSOR, t };
}

function halves(name: string, dims: readonly number[], dataType: number): Tensor {
  const length = dims.reduce((product, size) => product * size, 1);
  return {
    name,
    dims: dims.map(BigInt),
    dataType,
    int32Data: Array.from({ length }, (_, index) => 0x3c00 + index),
  };
}

function int64s(name: string, ...content: number[]): Tensor {
  return {
    name,
    dims: [BigInt(content.length)],
    dataType: DataType.INT64,
    int64Data: content.map(BigInt),
  };
}

function external(name: string, dims: readonly number[]): Tensor {
  return {
    name,
    dims: dims.map(BigInt),
    dataType: DataType.FLOAT,
    dataLocation: DataLocation.EXTERNAL,
    externalData: [
      { key: "location", value: externalFile.name },
      { key: "offset", value: "4096" },
      { key: "length", value: String(4 * dims.reduce((product, size) => product * size, 1)) },
    ],
  };
}

function axes(...ints: number[]): MessageInitShape<typeof AttributeProtoSchema> {
  return { name: "axes", type: AttributeType.INTS, ints: ints.map(BigInt) };
}

const products = (): Uint8Array =>
  encode(17, {
    input: [tensorInfo("x", [1, 32])],
    output: [tensorInfo("y", [1, 16])],
    initializer: [wave("w", [32, 48]), wave("v", [16, 48]), wave("c", [16])],
    node: [
      node("MatMul", ["x", "w"], ["h"]),
      node("Gemm", ["h", "v", "c"], ["y"], [integerAttribute("transB", 1)]),
    ],
  });

const convolutions = (): Uint8Array =>
  encode(11, {
    input: [tensorInfo("x", [1, 3, "h", "w"])],
    output: [tensorInfo("y", [1, 4, "a", "b"])],
    initializer: [wave("k", [8, 3, 3, 3]), wave("t", [8, 4, 2, 2])],
    node: [
      node("Conv", ["x", "k"], ["c"]),
      node("Softmax", ["c"], ["s"]),
      node("ConvTranspose", ["s", "t"], ["u"]),
      node("Unsqueeze", ["u"], ["v"], [axes(0)]),
      node("Squeeze", ["v"], ["y"], [axes(0)]),
    ],
  });

const tables = (): Uint8Array =>
  encode(13, {
    input: [tensorInfo("ids", ["n"], DataType.INT64)],
    output: [tensorInfo("y", ["n", 32]), tensorInfo("z", [1, "m", 16])],
    initializer: [wave("table", [40, 32]), wave("r", [1, 16, 4]), wave("q", [1, 16, 4])],
    node: [
      node("Identity", ["table"], ["same"]),
      node("Gather", ["same", "ids"], ["y"]),
      node("LSTM", ["y", "r", "q"], ["", "z"], [integerAttribute("hidden_size", 4)]),
    ],
  });

const branches = (): Uint8Array => {
  const branch = (name: string): Graph => ({
    output: [tensorInfo("r", [1, 16])],
    initializer: [wave(name, [16, 16])],
    node: [node("MatMul", ["x", name], ["p"]), node("MatMul", ["p", "outer"], ["r"])],
  });
  return encode(16, {
    input: [tensorInfo("x", [1, 16])],
    output: [tensorInfo("y", [1, 16])],
    initializer: [
      wave("outer", [16, 16]),
      { name: "yes", dataType: DataType.BOOL, int32Data: [1] },
    ],
    node: [
      node("Constant", [], ["k"], [constant({ ...wave("", [16, 20]) })]),
      node("MatMul", ["x", "k"], ["unused"]),
      node(
        "If",
        ["yes"],
        ["y"],
        [graphAttribute("then_branch", branch("a")), graphAttribute("else_branch", branch("b"))],
      ),
    ],
  });
};

const calls = (): Uint8Array =>
  encode(
    18,
    {
      input: [tensorInfo("x", [1, 16])],
      output: [tensorInfo("y", [1, 16])],
      initializer: [wave("w", [16, 16])],
      node: [{ ...node("Layer", ["x", "w"], ["y"], [axes(1)]), domain: "local" }],
    },
    [
      {
        name: "Layer",
        domain: "local",
        input: ["a", "b"],
        output: ["d"],
        attribute: ["axes"],
        opsetImport: [{ domain: "", version: 18n }],
        node: [
          node("MatMul", ["a", "b"], ["c"]),
          node("Constant", [], ["k"], [constant({ ...wave("", [16, 20]) })]),
          node("MatMul", ["c", "k"], ["d"]),
        ],
      },
    ],
  );

const elementTypes = (): Uint8Array =>
  encode(21, {
    input: [tensorInfo("x", [1, 16], DataType.FLOAT16)],
    output: [tensorInfo("y", [1, 24], DataType.FLOAT16)],
    initializer: [
      halves("half", [16, 24], DataType.FLOAT16),
      halves("brain", [16, 24], DataType.BFLOAT16),
      {
        name: "double",
        dims: [400n],
        dataType: DataType.DOUBLE,
        doubleData: Array.from({ length: 400 }, Math.cos),
      },
      { name: "empty", dims: [0n, 4n], dataType: DataType.FLOAT },
      { name: "scalar", dataType: DataType.FLOAT, floatData: [Number.NaN] },
      { name: "text", dims: [1n], dataType: DataType.STRING, stringData: [Uint8Array.of(65)] },
      { name: "nibbles", dims: [3n], dataType: DataType.INT4, rawData: Uint8Array.of(1, 2) },
    ],
    sparseInitializer: [
      {
        values: { ...wave("sparse", [3]) },
        indices: { name: "i", dims: [3n], dataType: DataType.INT64, int64Data: [0n, 2n, 5n] },
        dims: [16n, 24n],
      },
    ],
    node: [node("MatMul", ["x", "half"], ["y"])],
  });

const elsewhere = (): Uint8Array =>
  encode(17, {
    input: [tensorInfo("x", [1, 32])],
    output: [tensorInfo("y", [1, 48])],
    initializer: [external("w", [32, 48]), external("v", [48, 48])],
    node: [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "v"], ["y"])],
  });

const rearrangements = (): Uint8Array =>
  encode(13, {
    input: [tensorInfo("x", [1, 32])],
    output: [tensorInfo("y", [1, 48])],
    initializer: [
      wave("w", [48, 1, 32]),
      wave("v", [16, 32]),
      int64s("one", 1),
      int64s("shape", 32, -1),
      int64s("from", 0),
      int64s("to", 1000),
      int64s("step", 2),
    ],
    node: [
      node("Squeeze", ["w", "one"], ["a"]),
      node("Slice", ["a", "from", "to", "from", "step"], ["b"]),
      node("Concat", ["b", "v"], ["c"], [integerAttribute("axis", 0)]),
      node("Transpose", ["c"], ["d"], [{ ...axes(1, 0), name: "perm" }]),
      node("Reshape", ["d", "shape"], ["e"]),
      node("MatMul", ["x", "e"], ["h"]),
      node("Unsqueeze", ["v", "from"], ["u"]),
      node("Concat", ["u", "u"], ["r"], [integerAttribute("axis", 1)]),
      node("LSTM", ["h", "r", "r"], ["y"], [integerAttribute("hidden_size", 4)]),
    ],
  });

const oldest = (): Uint8Array =>
  encode(7, {
    input: [tensorInfo("x", [1, 3, 8, 8])],
    output: [tensorInfo("y", [1, "k"])],
    initializer: [
      wave("k", [16, 3, 3, 3]),
      wave("w", [16, 32]),
      wave("s", [16]),
      wave("n", [16]),
      wave("m", [16]),
    ],
    node: [
      node("Conv", ["x", "k"], ["a"]),
      node(
        "BatchNormalization",
        ["a", "s", "s", "n", "m"],
        ["b"],
        [integerAttribute("spatial", 1)],
      ),
      node(
        "Upsample",
        ["b"],
        ["c"],
        [{ name: "scales", type: AttributeType.FLOATS, floats: [1, 1, 2, 2] }],
      ),
      node("Clip", ["c"], ["d"], [{ name: "min", type: AttributeType.FLOAT, f: 0 }]),
      node("Pad", ["d"], ["e"], [{ ...axes(0, 0, 1, 1, 0, 0, 1, 1), name: "pads" }]),
      node("ReduceMean", ["e"], ["f"], [axes(2, 3), integerAttribute("keepdims", 0)]),
      node("Dropout", ["f"], ["g", "mask"], [{ name: "ratio", type: AttributeType.FLOAT, f: 0.5 }]),
      node("MatMul", ["g", "w"], ["h"]),
      node("Softmax", ["h"], ["i"], [integerAttribute("axis", 0)]),
      node(
        "Split",
        ["i"],
        ["j", "l"],
        [integerAttribute("axis", 1), { ...axes(16, 16), name: "split" }],
      ),
      node(
        "Slice",
        ["j"],
        ["p"],
        [axes(1), { ...axes(0), name: "starts" }, { ...axes(9), name: "ends" }],
      ),
      node("TopK", ["p"], ["y", "order"], [integerAttribute("k", 2)]),
    ],
  });

/** Models to mutate, the small ones more often than the real ones, which take longer. */
export async function seedModels(): Promise<readonly Uint8Array[]> {
  const small = [
    products(),
    convolutions(),
    tables(),
    branches(),
    calls(),
    elementTypes(),
    elsewhere(),
    rearrangements(),
    oldest(),
  ];
  const real = await Promise.all(
    (["ocr-orientation", "voice-legacy"] as const).map((name) => readFile(realModel(name))),
  );
  return [...Array.from({ length: 20 }, () => small).flat(), ...real];
}
