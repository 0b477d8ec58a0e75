import {
  attributeToInput,
  boundsToInputs,
  countToInput,
  dftAxisToInput,
  padsToInputs,
  rangesToInputs,
  ratioToInput,
  upsampleScalesToInput,
} from "./attributes-to-inputs.ts";
import {
  firstInput,
  createOperatorNode,
  firstOutputName,
  type OpsetChange,
  opsetUnsupportedError,
  withStringAttribute,
} from "./opset-change.ts";
import { repeatScalesPerChannel } from "./repeat-scales-per-channel.ts";
import type { RewriteScope } from "./rewrite-scope.ts";
import {
  attributesWith,
  attributesWithout,
  attributeText,
  findAttribute,
  intAttribute,
  nodeWith,
} from "../onnx/node-attributes.ts";
import type { AttributeProto, NodeProto } from "../onnx/onnx_pb.js";
import { readFloat32Elements } from "../onnx/read-tensor.ts";

const axesToInput: OpsetChange = (node, scope) => [attributeToInput(node, "axes", scope)];

/** Changes of the standard operators that a node is rewritten for, by operator and opset. */
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

function refuseBecause(reason: string): OpsetChange {
  return (node) => {
    throw opsetUnsupportedError(node, reason);
  };
}

function withoutSpatial(node: NodeProto): NodeProto[] {
  if (findAttribute(node, "spatial")?.i === 0n) {
    throw opsetUnsupportedError(node, "has statistics for each position");
  }
  return [nodeWith(node, { attribute: attributesWithout(node, "spatial") })];
}

function refuseTraining(node: NodeProto): NodeProto[] {
  if (node.output.slice(1).some((name) => name !== "")) {
    throw opsetUnsupportedError(node, "has the outputs of training");
  }
  return [node];
}

function withoutFloatMask(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [, mask = ""] = node.output;
  if (mask !== "" && scope.rewrite.facts.isConsumed(mask)) {
    throw opsetUnsupportedError(node, "has a mask that was not boolean before");
  }
  return [nodeWith(node, { output: node.output.slice(0, 1) })];
}

function renameInterpolation(node: NodeProto): NodeProto[] {
  const mode = findAttribute(node, "mode");
  if (mode === undefined) return [node];
  if (mode.refAttrName !== "") {
    throw opsetUnsupportedError(node, "takes its mode from an attribute of a function");
  }
  const text = attributeText(mode);
  if (text === "bilinear") return [withStringAttribute(node, "mode", "linear")];
  return [text === "bicubic" ? withStringAttribute(node, "mode", "cubic") : node];
}

function withOutputCount(node: NodeProto): NodeProto[] {
  if (node.input.length > 1 && node.input[1] !== "") return [node];
  return [
    nodeWith(node, {
      attribute: attributesWith(node, intAttribute("num_outputs", node.output.length)),
    }),
  ];
}

/** Before opset 13 the axes from `axis` on were one; the new node gets the flattened value. */
function flattenFromAxis(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const axis = findAttribute(node, "axis") ?? intAttribute("axis", 1);
  const rank = scope.values.find(firstInput(node))?.rank;
  const isLast = axis.i === -1n || (rank !== undefined && Number(axis.i) === rank - 1);
  if (!isLast || axis.refAttrName !== "") return flattenAround(node, axis, scope);
  return [nodeWith(node, { attribute: attributesWith(node, intAttribute("axis", -1)) })];
}

/** The node on its flattened input, and a Reshape of its output back to the input's shape. */
function flattenAround(node: NodeProto, axis: AttributeProto, scope: RewriteScope): NodeProto[] {
  const { names, targetOpset } = scope.rewrite;
  const [data = ""] = node.input;
  const output = firstOutputName(node);
  const shape = names.allocate(`${output}_shape`);
  const flat = names.allocate(`${data}_flat`);
  const result = names.allocate(`${output}_flat`);
  const attribute = attributesWith(node, intAttribute("axis", -1));
  const reshaping = targetOpset >= 14 ? [intAttribute("allowzero", 1)] : [];
  return [
    createOperatorNode("Shape", [data], shape),
    createOperatorNode("Flatten", [data], flat, [axis]),
    nodeWith(node, { input: [flat], output: [result], attribute }),
    createOperatorNode("Reshape", [result, shape], output, reshaping),
  ];
}

/** Opset 10 leaves the coordinate transformation open; ONNX Runtime's is asymmetric. */
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

/** ONNX Runtime's nearest pixel of opset 10: the floor where an axis grows, else the ceiling. */
function nearestMode(node: NodeProto, scales: string, scope: RewriteScope): "floor" | "ceil" {
  const constant = scope.values.find(scales)?.constant;
  const factors = constant && readFloat32Elements(constant);
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
