import { create } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { attributesWith, nodeWith, stringAttribute } from "../onnx/node-attributes.ts";
import { NodeProtoSchema } from "../onnx/onnx_pb.js";
import type { AttributeProto, NodeProto } from "../onnx/onnx_pb.js";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { RewriteScope } from "./rewrite-scope.ts";

/** The nodes, valid in the opset of the change, that do what the node did in the opset before. */
export type OpsetChange = (node: NodeProto, scope: RewriteScope) => NodeProto[];

export function opsetUnsupportedError(node: NodeProto, reason: string): ServiceError {
  const name = node.name === "" ? "" : ` ${quoteName(node.name)}`;
  return new ServiceError(
    "model_opset_unsupported",
    `Cannot raise the opset of ${node.opType}${name}: it ${reason}`,
  );
}

export function withStringAttribute(node: NodeProto, name: string, text: string): NodeProto {
  return nodeWith(node, { attribute: attributesWith(node, stringAttribute(name, text)) });
}

/** @throws ServiceError model_opset_unsupported where the node has no inputs at all */
export function firstInput(node: NodeProto): string {
  const [name] = node.input;
  if (name === undefined) throw opsetUnsupportedError(node, "has no inputs");
  return name;
}

export function firstOutputName(node: NodeProto): string {
  return node.output.find((name) => name !== "") ?? node.opType;
}

export function createOperatorNode(
  opType: string,
  input: string[],
  output: string,
  attribute: AttributeProto[] = [],
): NodeProto {
  return create(NodeProtoSchema, { opType, input, output: [output], attribute });
}
