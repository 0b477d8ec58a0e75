import {
  attributeText,
  attributesWith,
  attributesWithout,
  findAttribute,
  intAttribute,
  nodeWith,
} from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
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
import { flattenFromAxis } from "./flatten-from-axis.ts";
import { opsetUnsupportedError, withStringAttribute, type OpsetChange } from "./opset-change.ts";
import { repeatScalesPerChannel } from "./repeat-scales-per-channel.ts";
import { resizeAsymmetric, sizesInsteadOfScales } from "./resize-changes.ts";
import type { RewriteScope } from "./rewrite-scope.ts";

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
  if (scope.rewrite.facts.isConsumed(node.output[1] ?? "")) {
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
