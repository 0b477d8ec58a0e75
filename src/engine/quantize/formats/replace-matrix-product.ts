import { create } from "@bufbuild/protobuf";
import { at } from "../../onnx/at.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../../onnx/onnx_pb.js";
import { isAttributeSet } from "../channel-axis.ts";
import type { ValueUse } from "../graph-index.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
import { float32ToBfloat16 } from "../kernels/convert-bfloat16.ts";

interface ProductReplacement {
  readonly use: ValueUse;
  readonly elementType: number;
  /** Adds the product itself, with the given left side. @returns the name of its result */
  readonly multiply: (left: string, steps: NodeDescription[]) => string;
}

/**
 * Replaces a MatMul or Gemm by another product and, for a Gemm, by nodes for what it does besides:
 * transA, alpha, beta and C.
 */
export function replaceMatrixProduct(rewrite: GraphRewrite, replacement: ProductReplacement): void {
  const { use, multiply } = replacement;
  const { node } = use;
  const steps: NodeDescription[] = [];
  if (node.opType === "MatMul") multiply(at(node.input, 0), steps);
  else addGemmSteps(rewrite, replacement, steps);
  const last = steps.pop();
  if (last !== undefined) rewrite.replaceNode(node, [...steps, { ...last, output: node.output }]);
}

function addGemmSteps(
  rewrite: GraphRewrite,
  { use: { node, scope }, elementType, multiply }: ProductReplacement,
  steps: NodeDescription[],
): void {
  const [left = "", , bias = ""] = node.input;
  const allocate = (part: string) => rewrite.names.allocate(`${node.output[0]}_${part}`);
  const scale = (name: string, factor: "alpha" | "beta") => {
    const number = findAttribute(node, factor)?.f ?? 1;
    if (number === 1) return name;
    const [product, constant] = [allocate(`times_${factor}`), allocate(factor)];
    rewrite.addConstantTensor(scope.body, scalarTensor(constant, elementType, number));
    steps.push({ opType: "Mul", input: [name, constant], output: [product] });
    return product;
  };
  const straight = isAttributeSet(node, "transA") ? allocate("transposed") : left;
  if (straight !== left) steps.push({ opType: "Transpose", input: [left], output: [straight] });
  const result = scale(multiply(straight, steps), "alpha");
  if (bias === "") return;
  const input = [result, scale(bias, "beta")];
  steps.push({ opType: "Add", input, output: [allocate("sum")] });
}

function scalarTensor(name: string, dataType: number, number: number) {
  const { buffer } = encodeNumber(dataType, number);
  return create(TensorProtoSchema, { name, dataType, rawData: new Uint8Array(buffer) });
}

function encodeNumber(dataType: number, number: number) {
  const single = Float32Array.of(number);
  if (dataType === DataType.FLOAT) return single;
  if (dataType === DataType.FLOAT16) return Float16Array.from(single);
  if (dataType === DataType.BFLOAT16) return float32ToBfloat16(single);
  throw new TypeError(`A product is planned in ${elementTypeName(dataType)}`);
}
