import { countElements } from "../../onnx/tensor-shape.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { type Weight, weightDims } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { sourceWeight } from "../source-weight.ts";

/** Adds a weight in half precision. @returns its name */
export function addHalfWeight(
  rewrite: GraphRewrite,
  weight: Weight,
  { isKept }: { readonly isKept: boolean },
): string {
  const dims = weightDims(weight);
  const name = rewrite.names.allocate(`${weight.name}_half`);
  const bytes = countElements(dims) * 2;
  const tensor = { name, dims, dataType: DataType.FLOAT16, bytes };
  const values = rewrite.addComputedTensor(weight, tensor);
  const source = sourceWeight(rewrite.model, weight);
  rewrite.tasks.push({ kind: "half", ...source, resultBytes: bytes, outputs: { values } });
  if (isKept) rewrite.makeConstant(weight.scope, weight.name);
  else rewrite.removeWeight(weight);
  return name;
}
