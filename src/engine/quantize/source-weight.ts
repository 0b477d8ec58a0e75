import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { tensorSource } from "../onnx/read-tensor.ts";
import type { Weight } from "./find-weights.ts";
import type { SourceWeight } from "./tasks/weight-task.ts";
import { countElements } from "../onnx/count-elements.ts";
import { weightDims } from "./weight-dims.ts";

/** The part of a task that says what it reads. The task's digest depends on the order. */
export function sourceWeight(model: OnnxModel, weight: Weight): SourceWeight {
  const elements = countElements(weightDims(weight));
  return {
    weight: weight.index,
    source: tensorSource(model, weight.tensor),
    sourceType: isHalfWeight(weight) ? "float16" : "float32",
    elements,
    sourceBytes: elements * floatBytes(weight),
  };
}

export function isHalfWeight({ tensor }: Weight): boolean {
  return tensor.dataType === DataType.FLOAT16;
}

/** Bytes of an element of a float32 or float16 weight; its scales have the same type. */
export function floatBytes(weight: Weight): 2 | 4 {
  return isHalfWeight(weight) ? 2 : 4;
}
