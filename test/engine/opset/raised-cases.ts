import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType as AttributeType,
  ModelProtoSchema,
  TensorProto_DataType as DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import type {
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
  ModelProto,
  TensorProtoSchema,
} from "../../../src/engine/onnx/onnx_pb.js";
import {
  integerAttribute,
  node,
  graphAttribute,
  tensorInfo,
  floatInitializer,
} from "../../support/tiny-model.ts";

type Attribute = MessageInitShape<typeof AttributeProtoSchema>;
type Graph = Exclude<MessageInitShape<typeof GraphProtoSchema>, { $typeName: string }>;
type Tensor = MessageInitShape<typeof TensorProtoSchema>;

export function integers(name: string, ...ints: number[]): Attribute {
  return { name, type: AttributeType.INTS, ints: ints.map(BigInt) };
}

export function float(name: string, f: number): Attribute {
  return { name, type: AttributeType.FLOAT, f };
}

export function text(name: string, content: string): Attribute {
  return { name, type: AttributeType.STRING, s: Buffer.from(content) };
}

function int64s(name: string, dims: number[], ...content: number[]): Tensor {
  return { name, dims: dims.map(BigInt), dataType: DataType.INT64, int64Data: content.map(BigInt) };
}

function floats(name: string, ...content: number[]): Tensor {
  return floatInitializer(name, [content.length], (index) => content[index] ?? 0);
}

interface SingleNode {
  opset: number;
  opType: string;
  attributes?: Attribute[];
  /** Shape of the input `x`. */
  shape: number[];
  /** Further inputs. */
  constants?: Tensor[];
  /** Ranks of the outputs, each float unless a type stands beside it. */
  outputs?: (number | [rank: number, elementType: number])[];
  /** Puts an Identity in front, so that nothing is declared about the node's input. */
  hidden?: boolean;
}

export interface RaisedCase {
  readonly name: string;
  readonly model: ModelProto;
  /** Largest difference of the outputs that the runtime's kernels for the two versions make themselves. */
  readonly tolerance?: number;
}

export function makeModel(
  opset: number,
  graph: Graph,
  functions: MessageInitShape<typeof FunctionProtoSchema>[] = [],
) {
  const local = functions.length > 0 ? [{ domain: "local", version: 1n }] : [];
  return create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [{ domain: "", version: BigInt(opset) }, ...local],
    functions,
    graph: { name: "tiny", ...graph },
  });
}

export function singleNode({
  opset,
  opType,
  attributes = [],
  shape,
  hidden,
  ...rest
}: SingleNode): ModelProto {
  const { constants = [], outputs = [shape.length] } = rest;
  const names = outputs.map((_, index) => `y${index}`);
  const input = [hidden ? "h" : "x", ...constants.map(({ name }) => name ?? "")];
  return makeModel(opset, {
    input: [tensorInfo("x", shape)],
    output: outputs.map((output, index) => {
      const [rank, elementType] = typeof output === "number" ? [output, DataType.FLOAT] : output;
      return tensorInfo(
        `y${index}`,
        Array.from({ length: rank }, (_, axis) => `y${index}d${axis}`),
        elementType,
      );
    }),
    initializer: constants.filter(({ name }) => name !== ""),
    node: [
      ...(hidden ? [node("Identity", ["x"], ["h"])] : []),
      node(opType, input, names, attributes),
    ],
  });
}

function single(name: string, settings: SingleNode, tolerance = 0): RaisedCase {
  return { name, model: singleNode(settings), tolerance };
}

const softmaxes = ["Softmax", "LogSoftmax", "Hardmax"].flatMap((opType) => [
  single(`${opType} over all axes from the second on`, { opset: 11, opType, shape: [2, 3, 4] }),
  single(`${opType} over the last axis of an undeclared value`, {
    opset: 9,
    opType,
    shape: [2, 3, 4],
    hidden: true,
    attributes: [integerAttribute("axis", 2)],
  }),
  single(`${opType} over the last axis`, {
    opset: 11,
    opType,
    shape: [2, 3, 4],
    attributes: [integerAttribute("axis", 2)],
  }),
  single(`${opType} over a negative axis`, {
    opset: 11,
    opType,
    shape: [2, 3, 4],
    attributes: [integerAttribute("axis", -2)],
  }),
  single(`${opType} over everything`, {
    opset: 11,
    opType,
    shape: [2, 3, 4],
    attributes: [integerAttribute("axis", 0)],
  }),
]);

const reductions = [
  "L1",
  "L2",
  "LogSum",
  "LogSumExp",
  "Max",
  "Mean",
  "Min",
  "Prod",
  "Sum",
  "SumSquare",
].flatMap((kind) => {
  const opType = `Reduce${kind}`;
  const axes = integers("axes", -1, 0);
  return [
    single(`${opType} over two axes`, {
      opset: 11,
      opType,
      shape: [2, 3, 4],
      outputs: [1],
      attributes: [axes, integerAttribute("keepdims", 0)],
    }),
    single(`${opType} over everything`, { opset: 12, opType, shape: [2, 3, 4] }),
  ];
});

const enlarging = floats("scales", 1, 1, 2, 3);
const shrinking = floats("scales", 1, 1, 0.5, 0.6);
const image = [1, 2, 5, 7];

const resizes = [
  single("Upsample with scales in an attribute", {
    opset: 7,
    opType: "Upsample",
    shape: image,
    attributes: [{ name: "scales", type: AttributeType.FLOATS, floats: [1, 1, 2, 3] }],
  }),
  ...["nearest", "linear"].flatMap((mode) => [
    single(`Upsample ${mode}`, {
      opset: 9,
      opType: "Upsample",
      shape: image,
      constants: [enlarging],
      attributes: [text("mode", mode)],
    }),
    single(`Resize ${mode} of opset 10 that enlarges`, {
      opset: 10,
      opType: "Resize",
      shape: image,
      constants: [enlarging],
      attributes: [text("mode", mode)],
    }),
    single(`Resize ${mode} of opset 10 that shrinks`, {
      opset: 10,
      opType: "Resize",
      shape: image,
      constants: [shrinking],
      attributes: [text("mode", mode)],
    }),
    ...["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"].map((transformation) =>
      single(`Resize ${mode} ${transformation} to sizes`, {
        opset: 11,
        opType: "Resize",
        shape: image,
        constants: [floats("roi"), floats("scales"), int64s("sizes", [4], 1, 2, 8, 5)],
        attributes: [text("mode", mode), text("coordinate_transformation_mode", transformation)],
      }),
    ),
  ]),
  single("Resize cubic by scales", {
    opset: 11,
    opType: "Resize",
    shape: image,
    constants: [floats("roi"), enlarging],
    attributes: [text("mode", "cubic")],
  }),
];

const shapes = [
  single("Squeeze of two axes", {
    opset: 11,
    opType: "Squeeze",
    shape: [1, 3, 1],
    outputs: [1],
    attributes: [integers("axes", 0, -1)],
  }),
  single("Squeeze of all axes", { opset: 11, opType: "Squeeze", shape: [1, 3, 1], outputs: [1] }),
  single("Unsqueeze", {
    opset: 11,
    opType: "Unsqueeze",
    shape: [2, 3],
    outputs: [4],
    attributes: [integers("axes", 0, -1)],
  }),
  single("Split in equal parts", { opset: 11, opType: "Split", shape: [4, 3], outputs: [2, 2] }),
  single("Split in unequal parts", {
    opset: 9,
    opType: "Split",
    shape: [3, 4],
    outputs: [2, 2],
    attributes: [integerAttribute("axis", 1), integers("split", 1, 3)],
  }),
  single("Split of opset 13 in equal parts", {
    opset: 13,
    opType: "Split",
    shape: [4, 3],
    outputs: [2, 2],
  }),
  single("Slice of two axes", {
    opset: 9,
    opType: "Slice",
    shape: [5, 6],
    attributes: [integers("axes", 1, 0), integers("starts", -3, 1), integers("ends", 1000, -1)],
  }),
  single("Slice of the first axes", {
    opset: 7,
    opType: "Slice",
    shape: [5, 6],
    attributes: [integers("starts", 1), integers("ends", 3)],
  }),
  single("Pad with a value", {
    opset: 10,
    opType: "Pad",
    shape: [2, 3],
    attributes: [integers("pads", 1, 0, 2, -1), float("value", 1.5)],
  }),
  single("Pad by reflection", {
    opset: 7,
    opType: "Pad",
    shape: [4, 4],
    attributes: [integers("pads", 1, 2, 0, 1), text("mode", "reflect")],
  }),
  single("TopK", {
    opset: 9,
    opType: "TopK",
    shape: [3, 5],
    outputs: [2, [2, DataType.INT64]],
    attributes: [integerAttribute("k", 2), integerAttribute("axis", 1)],
  }),
  single("Scatter", {
    opset: 9,
    opType: "Scatter",
    shape: [3, 3],
    constants: [
      int64s("indices", [1, 2], 2, 0),
      floatInitializer("updates", [1, 2], (index) => index + 7),
    ],
  }),
];

const pool = [
  integers("kernel_shape", 3, 2),
  integers("strides", 2, 2),
  integers("pads", 1, 0, 1, 0),
];
const channel = (name: string, offset: number) =>
  floatInitializer(name, [4], (index) => index / 3 + offset);

const others = [
  single("Clip at a minimum", {
    opset: 7,
    opType: "Clip",
    shape: [3, 4],
    attributes: [float("min", -0.5)],
  }),
  single("Clip at a maximum", {
    opset: 7,
    opType: "Clip",
    shape: [3, 4],
    hidden: true,
    attributes: [float("max", 0.5)],
  }),
  single("Clip at both bounds", {
    opset: 10,
    opType: "Clip",
    shape: [9],
    attributes: [float("min", 0), float("max", 1)],
  }),
  single("Clip at no bound", { opset: 7, opType: "Clip", shape: [3, 4] }),
  single("Dropout with a ratio", {
    opset: 11,
    opType: "Dropout",
    shape: [3, 4],
    attributes: [float("ratio", 0.3)],
  }),
  single("Dropout with a float mask that nobody reads", {
    opset: 7,
    opType: "Dropout",
    shape: [3, 4],
  }),
  {
    name: "Dropout beside a node without one of its inputs",
    model: makeModel(8, {
      input: [tensorInfo("x", [2, 1, 3])],
      output: [tensorInfo("y", [2, 1, 1, 4])],
      initializer: [
        floatInitializer("w", [1, 16, 3], (index) => Math.sin(index)),
        floatInitializer("r", [1, 16, 4], (index) => Math.cos(index)),
        floatInitializer("state", [1, 1, 4], (index) => index),
      ],
      node: [
        node("Dropout", ["x"], ["d"]),
        node("LSTM", ["d", "w", "r", "", "", "state"], ["y"], [integerAttribute("hidden_size", 4)]),
      ],
    }),
  },
  single("BatchNormalization", {
    opset: 7,
    opType: "BatchNormalization",
    shape: [2, 4, 3],
    attributes: [integerAttribute("spatial", 1)],
    constants: [
      channel("scale", 1),
      channel("bias", 0),
      channel("mean", 0.2),
      channel("variance", 0.5),
    ],
  }),
  single("GroupNormalization", {
    opset: 18,
    opType: "GroupNormalization",
    shape: [2, 4, 3],
    attributes: [integerAttribute("num_groups", 2)],
    constants: [floats("scale", 1, 2), floats("bias", 0.5, -1)],
  }),
  single("RoiAlign", {
    opset: 11,
    opType: "RoiAlign",
    shape: [1, 2, 8, 8],
    outputs: [4],
    attributes: [integerAttribute("output_height", 3), integerAttribute("output_width", 2)],
    constants: [
      floatInitializer("rois", [1, 4], (index) => [0.5, 1, 6, 7][index] ?? 0),
      int64s("batch", [1], 0),
    ],
  }),
  ...["bilinear", "nearest", "bicubic"].map((mode) =>
    single(`GridSample ${mode}`, {
      opset: 16,
      opType: "GridSample",
      shape: [1, 2, 4, 5],
      attributes: [text("mode", mode)],
      constants: [floatInitializer("grid", [1, 3, 2, 2], (index) => Math.sin(index))],
    }),
  ),
  single("GridSample by default", {
    opset: 16,
    opType: "GridSample",
    shape: [1, 2, 4, 5],
    constants: [floatInitializer("grid", [1, 3, 2, 2], (index) => Math.sin(index))],
  }),
  single("DFT by default", { opset: 17, opType: "DFT", shape: [2, 8, 1] }),
  single("DFT over another axis with a length", {
    opset: 17,
    opType: "DFT",
    shape: [2, 4, 8, 1],
    attributes: [integerAttribute("axis", 2), integerAttribute("onesided", 1)],
    constants: [int64s("length", [], 6)],
  }),
  single("AveragePool", { opset: 9, opType: "AveragePool", shape: image, attributes: pool }, 2e-7),
  single("LpPool", { opset: 11, opType: "LpPool", shape: image, attributes: pool }),
  single("MaxPool", { opset: 8, opType: "MaxPool", shape: image, attributes: pool }),
];

const branch = (axes: number[]) => ({
  output: [tensorInfo("r", ["a", "b"])],
  node: [
    node("Unsqueeze", ["outer"], ["u"], [integers("axes", ...axes)]),
    node("ReduceSum", ["u"], ["s"], [integers("axes", -1), integerAttribute("keepdims", 0)]),
    node("Softmax", ["s"], ["r"], [integerAttribute("axis", 0)]),
  ],
});

const nested: RaisedCase[] = [
  {
    name: "branches of an If that use values from outside",
    model: makeModel(11, {
      input: [tensorInfo("x", [2, 3])],
      output: [tensorInfo("y", ["a", "b"])],
      initializer: [{ name: "yes", dataType: DataType.BOOL, int32Data: [1] }],
      node: [
        node(
          "If",
          ["yes"],
          ["y"],
          [graphAttribute("then_branch", branch([2])), graphAttribute("else_branch", branch([0]))],
        ),
        node("Identity", ["x"], ["outer"]),
      ].toReversed(),
    }),
  },
  {
    name: "names that are taken",
    model: makeModel(11, {
      input: [tensorInfo("x", [2, 3])],
      output: [
        tensorInfo("y", ["a", "b", "c"]),
        tensorInfo("y_axes", ["d", "e"]),
        tensorInfo("y_axes_1", ["f", "g"]),
      ],
      node: [
        node("Unsqueeze", ["x"], ["y"], [integers("axes", 1)]),
        node("Relu", ["x"], ["y_axes"]),
        node("Neg", ["x"], ["y_axes_1"]),
      ],
    }),
  },
  {
    name: "a function that passes its attributes on",
    model: makeModel(
      17,
      {
        input: [tensorInfo("x", [2, 3])],
        output: [tensorInfo("y", ["a"])],
        node: [{ ...node("Mean", ["x"], ["y"], [integers("over", 1)]), domain: "local" }],
      },
      [
        {
          name: "Mean",
          domain: "local",
          input: ["a"],
          output: ["b"],
          attribute: ["over"],
          opsetImport: [{ domain: "", version: 17n }],
          node: [
            node(
              "ReduceMean",
              ["a"],
              ["m"],
              [{ name: "axes", type: AttributeType.INTS, refAttrName: "over" }],
            ),
            node("ReduceMax", ["m"], ["b"], [integers("axes", 1), integerAttribute("keepdims", 0)]),
          ],
        },
      ],
    ),
  },
];

/** Small models, each with an operator that has to be written otherwise in newer opsets. */
export const raisedCases: readonly RaisedCase[] = [
  ...softmaxes,
  ...reductions,
  ...resizes,
  ...shapes,
  ...others,
  ...nested,
];
