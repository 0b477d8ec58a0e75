import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { countBlocks, type BlockFormat, type MatrixShape } from "../kernels/block-format.ts";
import { isHalfWeight, sourceWeight } from "../source-weight.ts";
import type { BlockTask } from "../tasks/weight-task.ts";
import { countElements } from "../../onnx/count-elements.ts";
import {
  addQuantizedTensors,
  quantizedTensorBytes,
  type QuantizedTensorNames,
  type QuantizedTensors,
} from "./quantized-tensors.ts";

/** Quantized values of a matrix with a scale for each block, as an operator takes them. */
export interface BlockPlan {
  readonly layout: BlockTask["layout"];
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
  readonly tensors: QuantizedTensors;
}

export function blockFormat(bits: 4 | 8, { blockSize, symmetric }: Recipe): BlockFormat {
  return { bits, blockSize, symmetric };
}

/** Bytes of quantized values, scales and zero points. */
export function blockPlanBytes(weight: Weight, { tensors }: BlockPlan): number {
  return quantizedTensorBytes(weight, tensors);
}

/**
 * Quantized values [N, blocks, bytes of a block] as MatMulNBits takes them, or [N, bytes of a row]
 * as GatherBlockQuantized does.
 */
export function packedBlockPlan(
  layout: "matmul" | "gather",
  shape: MatrixShape,
  format: BlockFormat,
): BlockPlan {
  const { k, n } = shape;
  const { bits, blockSize, symmetric } = format;
  const blocks = countBlocks(k, format);
  const rowDims =
    layout === "matmul" ? [blocks, (blockSize * bits) / 8] : [Math.ceil((k * bits) / 8)];
  const packed = (dims: number[]) => ({
    dims,
    dataType: DataType.UINT8,
    bytes: countElements(dims),
  });
  const tensors = {
    quantizedValues: packed([n, ...rowDims]),
    scaleDims: [n, blocks],
    zeroPoints: symmetric ? undefined : packed([n, Math.ceil((blocks * bits) / 8)]),
  };
  return { layout, shape, format, tensors };
}

/**
 * Quantized values and scales as a blocked DequantizeLinear takes them: in the order of the matrix,
 * where scales have the blocks of each row or column in place of its values.
 */
export function dequantizeLinearBlockPlan(shape: MatrixShape, format: BlockFormat): BlockPlan {
  const { order, k, n } = shape;
  const blocks = countBlocks(k, format);
  const dataType = blockDataType(format);
  const orderDims = (inputs: number) => (order === "kn" ? [inputs, n] : [n, inputs]);
  const packed = (inputs: number) => ({
    dims: orderDims(inputs),
    dataType,
    bytes: Math.ceil((inputs * n * format.bits) / 8),
  });
  const tensors = {
    quantizedValues: packed(k),
    scaleDims: orderDims(blocks),
    zeroPoints: format.symmetric ? undefined : packed(blocks),
  };
  return { layout: order === "kn" ? "columns" : "rows", shape, format, tensors };
}

function blockDataType({ bits, symmetric }: BlockFormat): number {
  if (bits === 4) return symmetric ? DataType.INT4 : DataType.UINT4;
  return symmetric ? DataType.INT8 : DataType.UINT8;
}

/** Replaces a weight by quantized tensors and adds the task that computes them. */
export function addBlockTensors(
  rewrite: GraphRewrite,
  weight: Weight,
  { layout, shape, format, tensors }: BlockPlan,
): QuantizedTensorNames {
  const source = sourceWeight(rewrite.model, weight);
  const { names, outputs } = addQuantizedTensors(rewrite, weight, tensors);
  rewrite.tasks.push({
    kind: "blocks",
    ...source,
    resultBytes: quantizedTensorBytes(weight, tensors),
    layout,
    shape,
    format,
    matrices: 1,
    scaleType: isHalfWeight(weight) ? "float16" : "float32",
    outputs,
  });
  return names;
}
