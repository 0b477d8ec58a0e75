import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { TensorProto } from "../../onnx/onnx_pb.js";
import { tensorSource } from "../../onnx/read-tensor.ts";
import type { Weight } from "../find-weights.ts";
import type { LinearFormat } from "../kernels/linear-codes.ts";
import type { Rewrite } from "../rewrite.ts";

/** 8-bit codes of a weight with one scale, or one for each slice along an axis. */
export interface LinearPlan {
  readonly axis: number | undefined;
  readonly format: LinearFormat;
  /** Whether the codes are laid out as the transposed matrix. */
  readonly transposed: boolean;
  /** Shape of the scales and zero points. */
  readonly scaleDims: readonly number[];
}

export interface LinearNames {
  readonly codes: string;
  readonly scales: string;
  readonly zeroPoints: string | undefined;
}

export function weightDims({ tensor }: Weight): number[] {
  return weightDimsOf(tensor);
}

export function weightDimsOf({ dims }: TensorProto): number[] {
  return dims.map(Number);
}

export function linearFormat(recipe: Recipe): LinearFormat {
  return { type: "int8", symmetric: recipe.symmetric, reduceRange: recipe.reduceRange };
}

export function isHalf({ tensor }: Weight): boolean {
  return tensor.dataType === DataType.FLOAT16;
}

/** Bytes of codes, scales and zero points. */
export function linearBytes(weight: Weight, { scaleDims, format }: LinearPlan): number {
  const elements = product(weightDims(weight));
  const scales = product(scaleDims);
  return elements + scales * (isHalf(weight) ? 2 : 4) + (format.symmetric ? 0 : scales);
}

export function product(dims: readonly number[]): number {
  return dims.reduce((count, dim) => count * dim, 1);
}

/** Adds the tensors of the codes and the task that computes them. The weight's own name stays free for what replaces it. */
export function addLinearCodes(rewrite: Rewrite, weight: Weight, plan: LinearPlan): LinearNames {
  const dims = weightDims(weight);
  const { axis, format, scaleDims, transposed } = plan;
  const names = {
    codes: rewrite.names.take(`${weight.name}_quantized`),
    scales: rewrite.names.take(`${weight.name}_scale`),
    zeroPoints: format.symmetric ? undefined : rewrite.names.take(`${weight.name}_zero_point`),
  };
  const scaleCount = product(scaleDims);
  const half = isHalf(weight);
  const code = { dims: transposed ? dims.toReversed() : dims, dataType: DataType.INT8, bytes: product(dims) };
  const scale = {
    dims: scaleDims,
    dataType: half ? DataType.FLOAT16 : DataType.FLOAT,
    bytes: scaleCount * (half ? 2 : 4),
  };
  const zeroPoint = { dims: scaleDims, dataType: DataType.INT8, bytes: scaleCount };
  const outputs = {
    codes: rewrite.addComputed(weight, { name: names.codes, ...code }),
    scales: rewrite.addComputed(weight, { name: names.scales, ...scale }),
    zeroPoints:
      names.zeroPoints === undefined
        ? undefined
        : rewrite.addComputed(weight, { name: names.zeroPoints, ...zeroPoint }),
  };
  rewrite.tasks.push({
    kind: "linear",
    weight: weight.index,
    source: tensorSource(rewrite.model, weight.tensor),
    sourceType: half ? "float16" : "float32",
    elements: product(dims),
    sourceBytes: product(dims) * (half ? 2 : 4),
    resultBytes: linearBytes(weight, plan),
    channels: axis === undefined ? 1 : (dims[axis] ?? 1),
    inner: axis === undefined ? product(dims) : product(dims.slice(axis + 1)),
    format,
    halfScales: half,
    transposeColumns: transposed ? dims[1] : undefined,
    outputs,
  });
  rewrite.drop(weight);
  return names;
}
