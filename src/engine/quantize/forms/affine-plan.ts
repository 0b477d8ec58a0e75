import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { TensorProto } from "../../onnx/onnx_pb.js";
import { tensorSource } from "../../onnx/read-tensor.ts";
import type { Weight } from "../find-weights.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";

/** 8-bit codes of a weight with one scale, or one for each slice along an axis. */
export interface AffinePlan {
  readonly axis: number | undefined;
  readonly format: AffineFormat;
  /** Whether the codes are laid out as the transposed matrix. */
  readonly transposed: boolean;
  /** Shape of the scales and zero points. */
  readonly scaleDims: readonly number[];
}

export interface QuantizedTensorNames {
  readonly quantizedValues: string;
  readonly scales: string;
  readonly zeroPoints: string | undefined;
}

export function weightDims({ tensor }: Weight): number[] {
  return tensorDims(tensor);
}

export function tensorDims({ dims }: TensorProto): number[] {
  return dims.map(Number);
}

export function affineFormat(recipe: Recipe): AffineFormat {
  return { type: "int8", symmetric: recipe.symmetric, reduceRange: recipe.reduceRange };
}

export function isHalfWeight({ tensor }: Weight): boolean {
  return tensor.dataType === DataType.FLOAT16;
}

/** Bytes of codes, scales and zero points. */
export function affinePlanBytes(weight: Weight, { scaleDims, format }: AffinePlan): number {
  const elements = countElements(weightDims(weight));
  const scales = countElements(scaleDims);
  return elements + scales * (isHalfWeight(weight) ? 2 : 4) + (format.symmetric ? 0 : scales);
}

export function countElements(dims: readonly number[]): number {
  return dims.reduce((count, dim) => count * dim, 1);
}

/** Adds the tensors of the codes and the task that computes them. The weight's own name stays free for what replaces it. */
export function addAffineTensors(
  rewrite: GraphRewrite,
  weight: Weight,
  plan: AffinePlan,
): QuantizedTensorNames {
  const dims = weightDims(weight);
  const { axis, format, scaleDims, transposed } = plan;
  const names = {
    quantizedValues: rewrite.names.allocate(`${weight.name}_quantized`),
    scales: rewrite.names.allocate(`${weight.name}_scale`),
    zeroPoints: format.symmetric ? undefined : rewrite.names.allocate(`${weight.name}_zero_point`),
  };
  const scaleCount = countElements(scaleDims);
  const half = isHalfWeight(weight);
  const code = {
    dims: transposed ? dims.toReversed() : dims,
    dataType: DataType.INT8,
    bytes: countElements(dims),
  };
  const scale = {
    dims: scaleDims,
    dataType: half ? DataType.FLOAT16 : DataType.FLOAT,
    bytes: scaleCount * (half ? 2 : 4),
  };
  const zeroPoint = { dims: scaleDims, dataType: DataType.INT8, bytes: scaleCount };
  const outputs = {
    quantizedValues: rewrite.addComputedTensor(weight, { name: names.quantizedValues, ...code }),
    scales: rewrite.addComputedTensor(weight, { name: names.scales, ...scale }),
    zeroPoints:
      names.zeroPoints === undefined
        ? undefined
        : rewrite.addComputedTensor(weight, { name: names.zeroPoints, ...zeroPoint }),
  };
  rewrite.tasks.push({
    kind: "linear",
    weight: weight.index,
    source: tensorSource(rewrite.model, weight.tensor),
    sourceType: half ? "float16" : "float32",
    elements: countElements(dims),
    sourceBytes: countElements(dims) * (half ? 2 : 4),
    resultBytes: affinePlanBytes(weight, plan),
    channels: axis === undefined ? 1 : (dims[axis] ?? 1),
    inner: axis === undefined ? countElements(dims) : countElements(dims.slice(axis + 1)),
    format,
    halfScales: half,
    transposeColumns: transposed ? dims[1] : undefined,
    outputs,
  });
  rewrite.removeWeight(weight);
  return names;
}
