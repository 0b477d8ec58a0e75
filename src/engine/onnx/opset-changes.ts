import { create } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "./external-data.ts";
import { floatElements } from "./known-values.ts";
import {
  attributeText,
  attributesWith,
  attributesWithout,
  findAttribute,
  intAttribute,
  nodeWith,
  stringAttribute,
} from "./node-attributes.ts";
import { NodeProtoSchema, TensorProto_DataType } from "./onnx_pb.js";
import type { AttributeProto, NodeProto } from "./onnx_pb.js";
import type { RewriteScope } from "./rewrite-scope.ts";

/** Gives the nodes, valid in the opset of the change, that do what the node did in the opset before. */
type OpsetChange = (node: NodeProto, scope: RewriteScope) => NodeProto[];

const axesToInput: OpsetChange = (node, scope) => [attributeToInput(node, "axes", scope)];

/** By operator and opset, the changes of the standard operators that a node has to be rewritten for. */
export const opsetChanges: Readonly<Record<string, Readonly<Record<number, OpsetChange>>>> = {
  BatchNormalization: { 9: withoutSpatial, 14: refuseTraining },
  Clip: { 11: boundsToInputs },
  DFT: { 20: dftAxisToInput },
  Dropout: { 10: withoutFloatMask, 12: ratioToInput },
  GridSample: { 20: renameInterpolation },
  GroupNormalization: { 21: repeatScalesPerChannel },
  Hardmax: { 13: flattenFromAxis },
  LogSoftmax: { 13: flattenFromAxis },
  Pad: { 11: padsToInputs },
  ReduceL1: { 18: axesToInput },
  ReduceL2: { 18: axesToInput },
  ReduceLogSum: { 18: axesToInput },
  ReduceLogSumExp: { 18: axesToInput },
  ReduceMax: { 18: axesToInput },
  ReduceMean: { 18: axesToInput },
  ReduceMin: { 18: axesToInput },
  ReduceProd: { 18: axesToInput },
  ReduceSum: { 13: axesToInput },
  ReduceSumSquare: { 18: axesToInput },
  Resize: { 11: resizeAsymmetric, 13: sizesInsteadOfScales },
  RoiAlign: {
    16: (node) => [
      withStringAttribute(node, "coordinate_transformation_mode", "output_half_pixel"),
    ],
  },
  Scan: { 9: refuseBecause("had a batch axis before") },
  Scatter: { 11: (node) => [nodeWith(node, { opType: "ScatterElements" })] },
  Slice: { 10: rangesToInputs },
  Softmax: { 13: flattenFromAxis },
  Split: { 13: (node, scope) => [attributeToInput(node, "split", scope)], 18: withOutputCount },
  Squeeze: { 13: axesToInput },
  TopK: { 10: countToInput },
  Unsqueeze: { 13: axesToInput },
  Upsample: { 9: upsampleScalesToInput, 10: (node) => [nodeWith(node, { opType: "Resize" })] },
};

function opsetUnsupportedError(node: NodeProto, reason: string): ServiceError {
  const name = node.name === "" ? "" : ` ${quoteName(node.name)}`;
  return new ServiceError(
    "model_opset_unsupported",
    `Cannot raise the opset of ${node.opType}${name}: it ${reason}`,
  );
}

function refuseBecause(reason: string): OpsetChange {
  return (node) => {
    throw opsetUnsupportedError(node, reason);
  };
}

function withStringAttribute(node: NodeProto, name: string, text: string): NodeProto {
  return nodeWith(node, { attribute: attributesWith(node, stringAttribute(name, text)) });
}

function firstOutputName(node: NodeProto): string {
  return node.output.find((name) => name !== "") ?? node.opType;
}

/** Moves an attribute to the second input. An empty list means what an absent one does, except for Unsqueeze. */
function attributeToInput(node: NodeProto, name: string, scope: RewriteScope): NodeProto {
  const attribute = findAttribute(node, name);
  if (attribute === undefined) return node;
  const isDefault =
    attribute.ints.length === 0 && attribute.refAttrName === "" && node.opType !== "Unsqueeze";
  return nodeWith(node, {
    attribute: attributesWithout(node, name),
    input: isDefault
      ? node.input
      : [node.input[0] ?? "", scope.addAttributeConstant(node, attribute)],
  });
}

function withoutSpatial(node: NodeProto): NodeProto[] {
  if (findAttribute(node, "spatial")?.i === 0n)
    throw opsetUnsupportedError(node, "has statistics for each position");
  return [nodeWith(node, { attribute: attributesWithout(node, "spatial") })];
}

function refuseTraining(node: NodeProto): NodeProto[] {
  if (node.output.slice(1).some((name) => name !== ""))
    throw opsetUnsupportedError(node, "has the outputs of training");
  return [node];
}

function boundsToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const bound = (name: string): string => {
    const attribute = findAttribute(node, name);
    return attribute === undefined
      ? ""
      : addFloat32Input(node, { name, value: attribute.f }, scope);
  };
  const input = [node.input[0] ?? "", bound("min"), bound("max")];
  while (input.at(-1) === "") input.pop();
  return [nodeWith(node, { input, attribute: attributesWithout(node, "min", "max") })];
}

function addFloat32Input(
  node: NodeProto,
  { name, value }: { name: string; value: number },
  scope: RewriteScope,
): string {
  if (scope.floatType(node.input[0] ?? "") !== TensorProto_DataType.FLOAT) {
    throw opsetUnsupportedError(
      node,
      `has the attribute "${name}", and its input is not declared as float32`,
    );
  }
  return scope.addFloat32Constant(value, `${firstOutputName(node)}_${name}`);
}

function dftAxisToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const axis = findAttribute(node, "axis") ?? intAttribute("axis", 1);
  const input = [node.input[0] ?? "", node.input[1] ?? "", scope.addAttributeConstant(node, axis)];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "axis") })];
}

function withoutFloatMask(node: NodeProto, scope: RewriteScope): NodeProto[] {
  if (scope.rewrite.facts.isConsumed(node.output[1] ?? ""))
    throw opsetUnsupportedError(node, "has a mask that was not boolean before");
  return [nodeWith(node, { output: node.output.slice(0, 1) })];
}

function ratioToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const ratio = findAttribute(node, "ratio");
  if (ratio === undefined) return [node];
  if (ratio.refAttrName !== "")
    throw opsetUnsupportedError(node, "takes its ratio from an attribute of a function");
  const input = [
    node.input[0] ?? "",
    scope.addFloat32Constant(ratio.f, `${firstOutputName(node)}_ratio`),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "ratio") })];
}

function renameInterpolation(node: NodeProto): NodeProto[] {
  const mode = findAttribute(node, "mode");
  if (mode === undefined) return [node];
  if (mode.refAttrName !== "")
    throw opsetUnsupportedError(node, "takes its mode from an attribute of a function");
  const text = attributeText(mode);
  if (text === "bilinear") return [withStringAttribute(node, "mode", "linear")];
  return [text === "bicubic" ? withStringAttribute(node, "mode", "cubic") : node];
}

/** Repeats scale and bias of each group for the channels of the group. */
function repeatScalesPerChannel(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [data = "", scale = "", bias = ""] = node.input;
  const output = firstOutputName(node);
  const groups = findAttribute(node, "num_groups") ?? intAttribute("num_groups", 1);
  const names = scope.rewrite.names;
  const [channels, perGroup, repeats] = [
    names.allocate(`${output}_channels`),
    names.allocate(`${output}_channels_per_group`),
    names.allocate(`${output}_repeats`),
  ];
  const column = scope.addInt64Constant([-1, 1], `${output}_column`);
  const flat = scope.addInt64Constant([-1], `${output}_flat`);
  const count = scope.addAttributeConstant(node, groups);
  const one = scope.addInt64Constant([1], `${output}_one`);
  const perChannel = (input: string): { nodes: NodeProto[]; name: string } => {
    const [upright, repeated, name] = [
      names.allocate(`${input}_column`),
      names.allocate(`${input}_repeated`),
      names.allocate(`${input}_channels`),
    ];
    const nodes = [
      createOperatorNode("Reshape", [input, column], upright),
      createOperatorNode("Expand", [upright, repeats], repeated),
      createOperatorNode("Reshape", [repeated, flat], name),
    ];
    return { nodes, name };
  };
  const scales = perChannel(scale);
  const biases = perChannel(bias);
  return [
    createOperatorNode("Shape", [data], channels, [
      intAttribute("start", 1),
      intAttribute("end", 2),
    ]),
    createOperatorNode("Div", [channels, count], perGroup),
    createOperatorNode("Concat", [one, perGroup], repeats, [intAttribute("axis", 0)]),
    ...scales.nodes,
    ...biases.nodes,
    nodeWith(node, { input: [data, scales.name, biases.name] }),
  ];
}

function createOperatorNode(
  opType: string,
  input: string[],
  output: string,
  attribute: AttributeProto[] = [],
): NodeProto {
  return create(NodeProtoSchema, { opType, input, output: [output], attribute });
}

/** Before opset 13 the axes from `axis` on were one; a later node does that on the flattened value. */
function flattenFromAxis(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [data = ""] = node.input;
  const axis = findAttribute(node, "axis") ?? intAttribute("axis", 1);
  const last = intAttribute("axis", -1);
  const rank = scope.values.find(data)?.rank;
  const isLast = axis.i === -1n || (rank !== undefined && Number(axis.i) === rank - 1);
  if (isLast && axis.refAttrName === "")
    return [nodeWith(node, { attribute: attributesWith(node, last) })];
  const { names, targetOpset } = scope.rewrite;
  const output = firstOutputName(node);
  const [shape, flat, result] = [
    names.allocate(`${output}_shape`),
    names.allocate(`${data}_flat`),
    names.allocate(`${output}_flat`),
  ];
  return [
    createOperatorNode("Shape", [data], shape),
    createOperatorNode("Flatten", [data], flat, [axis]),
    nodeWith(node, { input: [flat], output: [result], attribute: attributesWith(node, last) }),
    createOperatorNode(
      "Reshape",
      [result, shape],
      output,
      targetOpset >= 14 ? [intAttribute("allowzero", 1)] : [],
    ),
  ];
}

function padsToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const pads = findAttribute(node, "pads");
  const value = findAttribute(node, "value");
  const input = [
    node.input[0] ?? "",
    scope.addInt64Constant(pads?.ints.map(Number) ?? [], `${firstOutputName(node)}_pads`),
  ];
  if (value !== undefined && value.f !== 0)
    input.push(addFloat32Input(node, { name: "value", value: value.f }, scope));
  return [nodeWith(node, { input, attribute: attributesWithout(node, "pads", "value") })];
}

/** Opset 10 left the transformation open; ONNX Runtime's is asymmetric, and nearest rounds away from no pixel. */
function resizeAsymmetric(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [data = "", scales = ""] = node.input;
  const transformed = withStringAttribute(node, "coordinate_transformation_mode", "asymmetric");
  const mode = findAttribute(node, "mode");
  const resized = nodeWith(transformed, {
    input: [data, scope.addFloat32Constant([], `${firstOutputName(node)}_roi`), scales],
  });
  if (mode !== undefined && attributeText(mode) !== "nearest") return [resized];
  return [withStringAttribute(resized, "nearest_mode", nearestMode(node, scales, scope))];
}

/** ONNX Runtime's nearest pixel of opset 10 is the floor where an axis grows and the ceiling where it shrinks. */
function nearestMode(node: NodeProto, scales: string, scope: RewriteScope): "floor" | "ceil" {
  const constant = scope.values.find(scales)?.constant;
  const factors = constant && floatElements(constant);
  if (factors === undefined) throw opsetUnsupportedError(node, "computes its scales");
  if (factors.every((factor) => factor >= 1)) return "floor";
  if (factors.every((factor) => factor <= 1)) return "ceil";
  throw opsetUnsupportedError(node, "both enlarges and shrinks");
}

function sizesInsteadOfScales(node: NodeProto): NodeProto[] {
  const transformation = findAttribute(node, "coordinate_transformation_mode");
  if (
    transformation &&
    (transformation.refAttrName !== "" || attributeText(transformation) === "tf_half_pixel_for_nn")
  ) {
    throw opsetUnsupportedError(
      node,
      'may have the coordinate_transformation_mode "tf_half_pixel_for_nn"',
    );
  }
  const [data = "", roi = "", , sizes = ""] = node.input;
  return [sizes === "" ? node : nodeWith(node, { input: [data, roi, "", sizes] })];
}

function rangesToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const ranges = ["starts", "ends", "axes"].flatMap((name) => findAttribute(node, name) ?? []);
  const input = [
    node.input[0] ?? "",
    ...ranges.map((attribute) => scope.addAttributeConstant(node, attribute)),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "starts", "ends", "axes") })];
}

function withOutputCount(node: NodeProto): NodeProto[] {
  if (node.input.length > 1 && node.input[1] !== "") return [node];
  return [
    nodeWith(node, {
      attribute: attributesWith(node, intAttribute("num_outputs", node.output.length)),
    }),
  ];
}

function countToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const count = Number(findAttribute(node, "k")?.i ?? 1n);
  const input = [
    node.input[0] ?? "",
    scope.addInt64Constant([count], `${firstOutputName(node)}_k`),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "k") })];
}

function upsampleScalesToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const scales = findAttribute(node, "scales")?.floats ?? [];
  const input = [
    node.input[0] ?? "",
    scope.addFloat32Constant(scales, `${firstOutputName(node)}_scales`),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "scales") })];
}
