import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { AttributeProto_AttributeType as AttributeType } from "../../../src/engine/onnx/onnx_pb.js";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { pythonMissing } from "../../support/python.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { compareResult, compress, makeFolder } from "./compress.ts";

const normal = createNormal(createRandom(11));
const limit = (name: string, f: number) => ({ name, type: AttributeType.FLOAT, f });
const clip = (result: string, most: number) =>
  node("Clip", ["a"], [result], [limit("min", 0), limit("max", most)]);
const pads = { name: "pads", type: AttributeType.INTS, ints: [1n, 1n, 1n, 1n] };

interface Case {
  /** Between two convolutions, from "x" to "z". */
  readonly nodes: ReturnType<typeof node>[];
  readonly operators: readonly string[];
  readonly isPadded?: boolean;
  readonly channels?: number;
  readonly outputs?: readonly string[];
  readonly exclude?: string[];
  /** Weights that have other numbers, besides the one in 8 bits. */
  readonly changed?: readonly string[];
}

const plus3 = node("Add", ["x", "three"], ["a"]);
const scaled = [
  node("Relu", ["x"], ["a"]),
  node("Mul", ["a", "third"], ["b"]),
  node("Add", ["fifth", "b"], ["z"]),
];

const cases: Readonly<Record<string, Case>> = {
  "a hard swish becomes two operators": {
    nodes: [plus3, clip("b", 6), node("Mul", ["x", "b"], ["c"]), node("Div", ["c", "six"], ["z"])],
    operators: ["HardSigmoid", "Mul"],
  },
  "a hard sigmoid becomes one operator": {
    nodes: [plus3, clip("b", 6), node("Mul", ["sixth", "b"], ["z"])],
    operators: ["HardSigmoid"],
  },
  "a Clip whose range is not what is divided by stays": {
    nodes: [node("Add", ["x", "three"], ["a"]), clip("b", 5), node("Div", ["b", "six"], ["z"])],
    operators: ["Clip"],
    changed: ["before_bias", "behind"],
  },
  "a Clip that is multiplied by a small number near to one over its range stays": {
    nodes: [plus3, clip("b", 65_535), node("Mul", ["b", "small"], ["z"])],
    operators: ["Clip", "Mul"],
    changed: ["before_bias"],
  },
  "numbers behind a convolution go into its weight and bias": {
    nodes: [
      node("Mul", ["third", "x"], ["a"]),
      node("Sub", ["a", "three"], ["b"]),
      node("Relu", ["b"], ["z"]),
    ],
    operators: ["Relu"],
    changed: ["before", "before_bias"],
  },
  "numbers before a convolution go into its weight and bias": {
    nodes: scaled,
    operators: ["Relu"],
    changed: ["behind", "behind_bias"],
  },
  "numbers around a convolution that is excluded stay": {
    nodes: scaled,
    exclude: ["behind"],
    operators: ["Relu", "Mul", "Add"],
  },
  "what is added before a convolution that pads with zeros is added there": {
    nodes: scaled,
    isPadded: true,
    operators: ["Relu", "Add"],
    changed: ["behind"],
  },
  "what is added before a convolution stays there where it is large": {
    nodes: [
      node("Relu", ["x"], ["a"]),
      node("Mul", ["a", "third"], ["b"]),
      node("Sub", ["b", "three"], ["z"]),
    ],
    operators: ["Relu", "Add"],
    changed: ["behind"],
  },
  "factors beyond the range of numbers stay": {
    nodes: [
      node("Mul", ["x", "denormal"], ["a"]),
      node("Relu", ["a"], ["b"]),
      node("Div", ["b", "denormal"], ["z"]),
    ],
    operators: ["Mul", "Relu", "Div"],
  },
  "a number that adds an axis before a convolution stays": {
    nodes: [
      node("Squeeze", ["x"], ["a"], [{ name: "axes", type: AttributeType.INTS, ints: [0n] }]),
      node("Mul", ["a", "axes"], ["z"]),
    ],
    operators: ["Squeeze", "Mul"],
  },
  "numbers of channels before a convolution stay": {
    nodes: [node("Relu", ["x"], ["a"]), node("Mul", ["a", "channels"], ["z"])],
    operators: ["Relu", "Mul"],
  },
  "numbers that make more channels stay": {
    nodes: [node("Mul", ["x", "ones"], ["z"])],
    channels: 1,
    operators: ["Mul"],
  },
  "what else is taken of the graph stays": {
    nodes: [node("Mul", ["third", "x"], ["a"]), node("Relu", ["a"], ["z"])],
    outputs: ["x"],
    operators: ["Mul", "Relu"],
  },
  "the end of a Gelu stays": {
    nodes: [
      node("Div", ["x", "root"], ["a"]),
      node("Erf", ["a"], ["b"]),
      node("Add", ["b", "one"], ["c"]),
      node("Mul", ["x", "c"], ["d"]),
      node("Mul", ["d", "half"], ["z"]),
    ],
    operators: ["Div", "Erf", "Add", "Mul", "Mul"],
  },
};

/** The other operators: three of them restore the weight that is in 8 bits. */
const around = ["Conv", "Conv", "Conv", "Tanh", "Cast", "Cast", "Mul"];

for (const [what, one] of Object.entries(cases)) {
  const {
    nodes,
    operators,
    isPadded,
    channels = 4,
    outputs = [],
    exclude = [],
    changed = [],
  } = one;
  test(what, { skip: pythonMissing }, async () => {
    await using folder = await makeFolder();
    const file = join(folder.path, "original.onnx");
    const side = isPadded === true ? 10 : 8;
    await writeTinyModel(
      file,
      {
        node: [
          node("Conv", ["input", "before"], ["x"]),
          ...nodes,
          node("Conv", ["z", "behind"], ["y"], isPadded === true ? [pads] : []),
          node("Tanh", ["y"], ["t"]),
          node("Conv", ["t", "exact"], ["end"]),
        ],
        input: [tensorInfo("input", [1, 4, 8, 8])],
        output: [
          tensorInfo("end", [1, 8, side, side]),
          ...outputs.map((name) => tensorInfo(name, [1, channels, 8, 8])),
        ],
        initializer: [
          floatInitializer("before", [channels, 4, 1, 1], normal),
          floatInitializer("behind", [8, 4, 1, 1], normal),
          // What is exact in 8 bits: the result differs by what was fused only.
          floatInitializer("exact", [8, 8, 1, 1], (index) => (index === 0 ? 127 : index)),
          floatInitializer("channels", [1, 4, 1, 1], normal),
          floatInitializer("ones", [1, 4, 1, 1], () => 2),
          floatInitializer("one", [], () => 1),
          floatInitializer("three", [1], () => 3),
          floatInitializer("six", [], () => 6),
          floatInitializer("fifth", [1], () => 0.2),
          floatInitializer("small", [], () => 1.05 / 65_535),
          floatInitializer("denormal", [], () => 1e-40),
          floatInitializer("axes", [1, 1, 1, 1], () => 2),
          floatInitializer("sixth", [1], () => 1 / 6),
          floatInitializer("third", [], () => 0.3),
          floatInitializer("half", [], () => 0.5),
          floatInitializer("root", [], () => Math.SQRT2),
        ],
      },
      { opset: 10 },
    );
    const { weights } = await compress(file, folder.path, {
      scheme: "int8-weight",
      granularity: "tensor",
      symmetric: true,
      minElements: 64,
      exclude,
    });
    const { sqnrDb, operators: found } = await compareResult(file, folder.path);
    assert.ok(sqnrDb > 110, `${sqnrDb} dB`);
    const kept = Object.entries(found).flatMap(([name, count]) => Array<string>(count).fill(name));
    assert.deepEqual(kept.toSorted(), [...operators, ...around].toSorted());
    const reported = weights.flatMap(({ name, form }) => (form === null ? [] : name));
    assert.deepEqual(reported.toSorted(), [...changed, "exact"].toSorted());
  });
}

test(
  "a weight that calls of a function share is multiplied for each",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const file = join(folder.path, "original.onnx");
    const tensor = (t: ReturnType<typeof floatInitializer>) => ({
      name: "value",
      type: AttributeType.TENSOR,
      t,
    });
    const kernel = floatInitializer("", [4, 4, 1, 1], normal);
    const scaledConv = {
      domain: "local",
      name: "ScaledConv",
      input: ["a"],
      output: ["d"],
      attributeProto: [{ ...tensor(kernel), name: "kernel" }],
      opsetImport: [{ domain: "", version: 17n }],
      node: [
        node("Constant", [], ["b"], [{ ...tensor(kernel), t: undefined, refAttrName: "kernel" }]),
        node("Constant", [], ["three"], [tensor(floatInitializer("", [], () => 3))]),
        node("Conv", ["a", "b"], ["c"]),
        node("Mul", ["c", "three"], ["d"]),
      ],
    };
    const call = (input: string, output: string) => ({
      ...node("ScaledConv", [input], [output]),
      domain: "local",
    });
    await writeTinyModel(
      file,
      {
        node: [call("x", "h"), call("h", "y")],
        input: [tensorInfo("x", [1, 4, 8, 8])],
        output: [tensorInfo("y", [1, 4, 8, 8])],
      },
      { functions: [scaledConv], domains: ["local"] },
    );
    await compress(file, folder.path, { scheme: "int8-weight", minElements: 0 });
    const { sqnrDb } = await compareResult(file, folder.path);
    assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
  },
);
