import { create } from "@bufbuild/protobuf";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { TensorProtoSchema } from "../../onnx/onnx_pb.js";
import { isSet, operatorOf } from "../channel-axis.ts";
import type { WeightUse } from "../find-weights.ts";
import type { NewNode, Rewrite } from "../rewrite.ts";

/** Whether a product takes its weight as N rows of K values. */
export function isTransposed({ node }: WeightUse): boolean {
  return operatorOf(node) === "Gemm" && isSet(node, "transB");
}

/** Why a product of matrices cannot take the weight as its second one. */
export function productObstacle({ node, input }: WeightUse): string | undefined {
  const operator = operatorOf(node);
  if (operator !== "MatMul" && operator !== "Gemm") return `is used by ${operator}, which is not a product of matrices`;
  return input === 1 ? undefined : `is input ${input} of ${operator}, and only input 1 can be in this form`;
}

interface ProductReplacement {
  readonly use: WeightUse;
  readonly elementType: number;
  /** Makes the product itself of the given left side. @returns the name of its result */
  readonly multiply: (left: string, steps: NewNode[]) => string;
}

/** Replaces a MatMul or Gemm by another product and, for a Gemm, what it does besides: transA, alpha, beta and C. */
export function replaceProduct(rewrite: Rewrite, { use, elementType, multiply }: ProductReplacement): void {
  const { node, scope } = use;
  const [left = "", , bias = ""] = node.input;
  const value = (part: string) => rewrite.names.take(`${node.output[0]}_${part}`);
  const steps: NewNode[] = [];
  const scaled = (name: string, factor: "alpha" | "beta") => {
    const number = findAttribute(node, factor)?.f ?? 1;
    if (number === 1) return name;
    const [product, constant] = [value(`times_${factor}`), value(factor)];
    rewrite.addConstant(scope.body, scalar(constant, elementType, number));
    steps.push({ opType: "Mul", input: [name, constant], output: [product] });
    return product;
  };
  if (node.opType === "MatMul") {
    multiply(left, steps);
  } else {
    const straight = isSet(node, "transA") ? value("transposed") : left;
    if (straight !== left) steps.push({ opType: "Transpose", input: [left], output: [straight] });
    const result = scaled(multiply(straight, steps), "alpha");
    if (bias !== "") steps.push({ opType: "Add", input: [result, scaled(bias, "beta")], output: [value("sum")] });
  }
  const last = steps.pop();
  if (last !== undefined) rewrite.replace(node, [...steps, { ...last, output: node.output }]);
}

function scalar(name: string, dataType: number, number: number) {
  const content = dataType === 1 ? Float32Array.of(number) : Float16Array.of(number);
  return create(TensorProtoSchema, { name, dataType, rawData: new Uint8Array(content.buffer) });
}
