import { create } from "@bufbuild/protobuf";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { TensorProtoSchema } from "../../onnx/onnx_pb.js";
import { isAttributeSet, operatorName } from "../channel-axis.ts";
import type { WeightUse } from "../find-weights.ts";
import type { NodeDescription, GraphRewrite } from "../graph-rewrite.ts";

/** Whether a product takes its weight as N rows of K values. */
export function isWeightTransposed({ node }: WeightUse): boolean {
  return operatorName(node) === "Gemm" && isAttributeSet(node, "transB");
}

/** Why a product of matrices cannot take the weight as its second one. */
export function findProductObstacle({ node, input }: WeightUse): string | undefined {
  const operator = operatorName(node);
  if (operator !== "MatMul" && operator !== "Gemm")
    return `is used by ${operator}, which is not a product of matrices`;
  return input === 1
    ? undefined
    : `is input ${input} of ${operator}, and only input 1 can be in this form`;
}

interface ProductReplacement {
  readonly use: WeightUse;
  readonly elementType: number;
  /** Makes the product itself of the given left side. @returns the name of its result */
  readonly multiply: (left: string, steps: NodeDescription[]) => string;
}

/** Replaces a MatMul or Gemm by another product and, for a Gemm, what it does besides: transA, alpha, beta and C. */
export function replaceMatrixProduct(
  rewrite: GraphRewrite,
  { use, elementType, multiply }: ProductReplacement,
): void {
  const { node, scope } = use;
  const [left = "", , bias = ""] = node.input;
  const value = (part: string) => rewrite.names.allocate(`${node.output[0]}_${part}`);
  const steps: NodeDescription[] = [];
  const scaled = (name: string, factor: "alpha" | "beta") => {
    const number = findAttribute(node, factor)?.f ?? 1;
    if (number === 1) return name;
    const [product, constant] = [value(`times_${factor}`), value(factor)];
    rewrite.addConstantTensor(scope.body, scalarTensor(constant, elementType, number));
    steps.push({ opType: "Mul", input: [name, constant], output: [product] });
    return product;
  };
  if (node.opType === "MatMul") {
    multiply(left, steps);
  } else {
    const straight = isAttributeSet(node, "transA") ? value("transposed") : left;
    if (straight !== left) steps.push({ opType: "Transpose", input: [left], output: [straight] });
    const result = scaled(multiply(straight, steps), "alpha");
    if (bias !== "")
      steps.push({ opType: "Add", input: [result, scaled(bias, "beta")], output: [value("sum")] });
  }
  const last = steps.pop();
  if (last !== undefined) rewrite.replaceNode(node, [...steps, { ...last, output: node.output }]);
}

function scalarTensor(name: string, dataType: number, number: number) {
  const content = dataType === 1 ? Float32Array.of(number) : Float16Array.of(number);
  return create(TensorProtoSchema, { name, dataType, rawData: new Uint8Array(content.buffer) });
}
