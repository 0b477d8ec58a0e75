import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import { isHalfWeight, sourceWeight } from "../source-weight.ts";
import { countElements } from "../../onnx/count-elements.ts";
import { weightDims } from "../weight-dims.ts";
import {
  addQuantizedTensors,
  quantizedTensorBytes,
  type QuantizedTensorNames,
  type QuantizedTensors,
} from "./quantized-tensors.ts";

/** int8 values of a weight with one scale, or one for each slice along an axis. */
export interface AffinePlan {
  readonly axis: number | undefined;
  readonly format: AffineFormat;
  /** Whether the quantized values are stored as the transposed matrix. */
  readonly transposed: boolean;
  /** Shape of the scales and zero points. */
  readonly scaleDims: readonly number[];
}

export function affineFormat({ symmetric, reduceRange }: Recipe): AffineFormat {
  return { type: "int8", symmetric, reduceRange };
}

/** Bytes of quantized values, scales and zero points. */
export function affinePlanBytes(weight: Weight, plan: AffinePlan): number {
  return quantizedTensorBytes(weight, affineTensors(weight, plan));
}

function affineTensors(
  weight: Weight,
  { format, transposed, scaleDims }: AffinePlan,
): QuantizedTensors {
  const dims = weightDims(weight);
  const dataType = DataType.INT8;
  return {
    quantizedValues: {
      dims: transposed ? dims.toReversed() : dims,
      dataType,
      bytes: countElements(dims),
    },
    scaleDims,
    zeroPoints: format.symmetric
      ? undefined
      : { dims: scaleDims, dataType, bytes: countElements(scaleDims) },
  };
}

/** Replaces a weight by quantized tensors and adds the task that computes them. */
export function addAffineTensors(
  rewrite: GraphRewrite,
  weight: Weight,
  plan: AffinePlan,
): QuantizedTensorNames {
  const { axis, format, transposed } = plan;
  const dims = weightDims(weight);
  const source = sourceWeight(rewrite.model, weight);
  const tensors = affineTensors(weight, plan);
  const { names, outputs } = addQuantizedTensors(rewrite, weight, tensors);
  rewrite.tasks.push({
    kind: "linear",
    ...source,
    resultBytes: quantizedTensorBytes(weight, tensors),
    channels: axis === undefined ? 1 : (dims[axis] ?? 1),
    inner: axis === undefined ? source.elements : countElements(dims.slice(axis + 1)),
    format,
    matrices: 1,
    scaleType: isHalfWeight(weight) ? "float16" : "float32",
    transposeColumns: transposed ? dims[1] : undefined,
    outputs,
  });
  return names;
}
