import {
  attributesWithout,
  findAttribute,
  intAttribute,
  nodeWith,
} from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import { TensorProto_DataType } from "../onnx/onnx_pb.js";
import type { RewriteScope } from "./rewrite-scope.ts";
import { firstInput, firstOutputName, opsetUnsupportedError } from "./opset-change.ts";

/**
 * Moves an attribute to the second input. An empty list means what an absent one does, except for
 * Unsqueeze.
 */
export function attributeToInput(node: NodeProto, name: string, scope: RewriteScope): NodeProto {
  const attribute = findAttribute(node, name);
  if (attribute === undefined) return node;
  const isDefault =
    attribute.ints.length === 0 && attribute.refAttrName === "" && node.opType !== "Unsqueeze";
  return nodeWith(node, {
    attribute: attributesWithout(node, name),
    input: isDefault ? node.input : [firstInput(node), scope.addAttributeConstant(node, attribute)],
  });
}

export function boundsToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const bound = (name: string): string => {
    const attribute = findAttribute(node, name);
    return attribute === undefined
      ? ""
      : addFloat32Input(node, { name, value: attribute.f }, scope);
  };
  const input = [firstInput(node), bound("min"), bound("max")];
  while (input.at(-1) === "") input.pop();
  return [nodeWith(node, { input, attribute: attributesWithout(node, "min", "max") })];
}

function addFloat32Input(
  node: NodeProto,
  { name, value }: { name: string; value: number },
  scope: RewriteScope,
): string {
  if (scope.floatType(firstInput(node)) !== TensorProto_DataType.FLOAT) {
    throw opsetUnsupportedError(
      node,
      `has the attribute "${name}", and its input is not declared as float32`,
    );
  }
  return scope.addFloat32Constant(value, `${firstOutputName(node)}_${name}`);
}

export function dftAxisToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const axis = findAttribute(node, "axis") ?? intAttribute("axis", 1);
  const input = [firstInput(node), node.input[1] ?? "", scope.addAttributeConstant(node, axis)];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "axis") })];
}

export function ratioToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const ratio = findAttribute(node, "ratio");
  if (ratio === undefined) return [node];
  if (ratio.refAttrName !== "") {
    throw opsetUnsupportedError(node, "takes its ratio from an attribute of a function");
  }
  const input = [
    firstInput(node),
    scope.addFloat32Constant(ratio.f, `${firstOutputName(node)}_ratio`),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "ratio") })];
}

export function padsToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const pads = findAttribute(node, "pads");
  const value = findAttribute(node, "value");
  const input = [
    firstInput(node),
    scope.addInt64Constant(pads?.ints.map(Number) ?? [], `${firstOutputName(node)}_pads`),
  ];
  if (value !== undefined && value.f !== 0) {
    input.push(addFloat32Input(node, { name: "value", value: value.f }, scope));
  }
  return [nodeWith(node, { input, attribute: attributesWithout(node, "pads", "value") })];
}

export function rangesToInputs(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const ranges = ["starts", "ends", "axes"].flatMap((name) => findAttribute(node, name) ?? []);
  const input = [
    firstInput(node),
    ...ranges.map((attribute) => scope.addAttributeConstant(node, attribute)),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "starts", "ends", "axes") })];
}

export function countToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const count = Number(findAttribute(node, "k")?.i ?? 1n);
  const input = [firstInput(node), scope.addInt64Constant([count], `${firstOutputName(node)}_k`)];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "k") })];
}

export function upsampleScalesToInput(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const scales = findAttribute(node, "scales")?.floats ?? [];
  const input = [
    firstInput(node),
    scope.addFloat32Constant(scales, `${firstOutputName(node)}_scales`),
  ];
  return [nodeWith(node, { input, attribute: attributesWithout(node, "scales") })];
}
