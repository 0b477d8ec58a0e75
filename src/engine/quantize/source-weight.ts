import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { tensorSource } from "../onnx/read-tensor.ts";
import { type Weight, weightDims } from "./find-weights.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { FloatType, SourceWeight } from "./tasks/weight-task.ts";
import { countElements } from "../onnx/tensor-shape.ts";

/** The part of a task that says what it reads. The task's digest depends on the order. */
export function sourceWeight(model: OnnxModel, weight: Weight): SourceWeight {
  const elements = countElements(weightDims(weight));
  const source = tensorSource(model, weight.tensor);
  // Values of a checkpoint are read as they are there, and not rounded to the graph's type first.
  const sourceType = source.kind === "checkpoint" ? "float32" : requireFloatType(weight);
  const sourceBytes = elements * (sourceType === "float32" ? 4 : 2);
  return { weight: weight.index, source, sourceType, elements, sourceBytes };
}

/** Types of weights that can be quantized. */
const floatTypeNames: ReadonlyMap<number, FloatType> = new Map([
  [DataType.FLOAT, "float32"],
  [DataType.FLOAT16, "float16"],
  [DataType.BFLOAT16, "bfloat16"],
]);

/** Type of a weight and of its scales; undefined where it cannot be quantized. */
export function findFloatType({ tensor }: Weight): FloatType | undefined {
  return floatTypeNames.get(tensor.dataType);
}

/** @throws TypeError for a weight that was planned though it cannot be quantized */
export function requireFloatType(weight: Weight): FloatType {
  const type = findFloatType(weight);
  if (type !== undefined) return type;
  throw new TypeError(`Weight ${quoteName(weight.name)} has elements that cannot be quantized`);
}

/** Bytes of an element of a weight; its scales have the same type. */
export function floatBytes(weight: Weight): 2 | 4 {
  return requireFloatType(weight) === "float32" ? 4 : 2;
}
