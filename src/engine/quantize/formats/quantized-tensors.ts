import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite, TensorDescription } from "../graph-rewrite.ts";
import { floatBytes, isHalfWeight } from "../source-weight.ts";
import type { TaskOutputs } from "../tasks/weight-task.ts";
import { countElements } from "../../onnx/count-elements.ts";

type IntegerTensor = Omit<TensorDescription, "name">;

/** The tensors that replace a weight: quantized values, and what DequantizeLinear needs besides. */
export interface QuantizedTensors {
  readonly quantizedValues: IntegerTensor;
  /** Scales have the weight's element type. */
  readonly scaleDims: readonly number[];
  /** A symmetric format stores none. */
  readonly zeroPoints: IntegerTensor | undefined;
}

export interface QuantizedTensorNames {
  readonly quantizedValues: string;
  readonly scales: string;
  readonly zeroPoints: string | undefined;
}

export function quantizedTensorBytes(weight: Weight, tensors: QuantizedTensors): number {
  const { quantizedValues, scaleDims, zeroPoints } = tensors;
  const scaleBytes = countElements(scaleDims) * floatBytes(weight);
  return quantizedValues.bytes + scaleBytes + (zeroPoints?.bytes ?? 0);
}

/** Replaces a weight by the tensors. Its own name stays free for a node that restores it. */
export function addQuantizedTensors(
  rewrite: GraphRewrite,
  weight: Weight,
  tensors: QuantizedTensors,
): { names: QuantizedTensorNames; outputs: TaskOutputs } {
  const { quantizedValues, scales, zeroPoints } = nameTensors(rewrite, weight, tensors);
  const outputs = {
    quantizedValues: rewrite.addComputedTensor(weight, quantizedValues),
    scales: rewrite.addComputedTensor(weight, scales),
    zeroPoints: zeroPoints && rewrite.addComputedTensor(weight, zeroPoints),
  };
  rewrite.removeWeight(weight);
  const names = {
    quantizedValues: quantizedValues.name,
    scales: scales.name,
    zeroPoints: zeroPoints?.name,
  };
  return { names, outputs };
}

function nameTensors(
  { names }: GraphRewrite,
  weight: Weight,
  { quantizedValues, scaleDims, zeroPoints }: QuantizedTensors,
) {
  const allocate = (part: string) => names.allocate(`${weight.name}_${part}`);
  return {
    quantizedValues: { name: allocate("quantized"), ...quantizedValues },
    scales: {
      name: allocate("scale"),
      dims: scaleDims,
      dataType: isHalfWeight(weight) ? DataType.FLOAT16 : DataType.FLOAT,
      bytes: countElements(scaleDims) * floatBytes(weight),
    },
    zeroPoints: zeroPoints && { name: allocate("zero_point"), ...zeroPoints },
  };
}

/** Inputs in the order of DequantizeLinear: quantized values, scales and, if any, zero points. */
export function quantizedInputs(names: QuantizedTensorNames): string[] {
  const { quantizedValues, scales, zeroPoints } = names;
  return zeroPoints === undefined
    ? [quantizedValues, scales]
    : [quantizedValues, scales, zeroPoints];
}
