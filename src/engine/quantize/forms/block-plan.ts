import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { tensorSource } from "../../onnx/read-tensor.ts";
import type { Weight } from "../find-weights.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";
import { countBlocks } from "../kernels/block-format.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { BlockTask } from "../weight-task.ts";
import { isHalfWeight, countElements } from "./affine-plan.ts";
import type { QuantizedTensorNames } from "./affine-plan.ts";

/** Codes of a matrix with a scale for each block, as an operator takes them. */
export interface BlockPlan {
  readonly layout: BlockTask["layout"];
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
  readonly quantizedValues: BlockTensor;
  readonly scales: readonly number[];
  readonly zeroPoints: BlockTensor;
}

interface BlockTensor {
  readonly dims: readonly number[];
  readonly dataType: number;
  readonly bytes: number;
}

export function blockFormat(bits: 4 | 8, { blockSize, symmetric }: Recipe): BlockFormat {
  return { bits, blockSize, symmetric };
}

/** Bytes of codes, scales and zero points. */
export function blockPlanBytes(
  weight: Weight,
  { quantizedValues, scales, zeroPoints, format }: BlockPlan,
): number {
  return (
    quantizedValues.bytes +
    countElements(scales) * (isHalfWeight(weight) ? 2 : 4) +
    (format.symmetric ? 0 : zeroPoints.bytes)
  );
}

/** Codes [N, blocks, bytes of a block] as MatMulNBits takes them, or [N, bytes of a row] as GatherBlockQuantized does. */
export function packedBlockPlan(
  layout: "matmul" | "gather",
  shape: MatrixShape,
  format: BlockFormat,
): BlockPlan {
  const { k, n } = shape;
  const { bits, blockSize } = format;
  const blocks = countBlocks(k, format);
  const dims =
    layout === "matmul" ? [n, blocks, (blockSize * bits) / 8] : [n, Math.ceil((k * bits) / 8)];
  const zeroPointDims = [n, Math.ceil((blocks * bits) / 8)];
  return {
    layout,
    shape,
    format,
    quantizedValues: { dims, dataType: DataType.UINT8, bytes: countElements(dims) },
    scales: [n, blocks],
    zeroPoints: {
      dims: zeroPointDims,
      dataType: DataType.UINT8,
      bytes: countElements(zeroPointDims),
    },
  };
}

/** Codes and scales as a blocked DequantizeLinear takes them: in the order of the matrix, with the blocks of each row or column in place of its inputs. */
export function dequantizeLinearBlockPlan(shape: MatrixShape, format: BlockFormat): BlockPlan {
  const { order, k, n } = shape;
  const { bits, symmetric } = format;
  const blocks = countBlocks(k, format);
  const signed = bits === 4 ? DataType.INT4 : DataType.INT8;
  const unsigned = bits === 4 ? DataType.UINT4 : DataType.UINT8;
  const dataType = symmetric ? signed : unsigned;
  const ordered = (inputs: number) => (order === "kn" ? [inputs, n] : [n, inputs]);
  return {
    layout: order === "kn" ? "columns" : "rows",
    shape,
    format,
    quantizedValues: { dims: ordered(k), dataType, bytes: Math.ceil((k * n * bits) / 8) },
    scales: ordered(blocks),
    zeroPoints: { dims: ordered(blocks), dataType, bytes: Math.ceil((blocks * n * bits) / 8) },
  };
}

/** Adds the tensors of the codes and the task that computes them. */
export function addBlockTensors(
  rewrite: GraphRewrite,
  weight: Weight,
  plan: BlockPlan,
): QuantizedTensorNames {
  const { layout, shape, format, quantizedValues, scales, zeroPoints } = plan;
  const names = {
    quantizedValues: rewrite.names.allocate(`${weight.name}_quantized`),
    scales: rewrite.names.allocate(`${weight.name}_scale`),
    zeroPoints: format.symmetric ? undefined : rewrite.names.allocate(`${weight.name}_zero_point`),
  };
  const half = isHalfWeight(weight);
  const elements = shape.k * shape.n;
  rewrite.tasks.push({
    kind: "blocks",
    weight: weight.index,
    source: tensorSource(rewrite.model, weight.tensor),
    sourceType: half ? "float16" : "float32",
    elements,
    sourceBytes: elements * (half ? 2 : 4),
    resultBytes: blockPlanBytes(weight, plan),
    layout,
    shape,
    format,
    halfScales: half,
    outputs: {
      quantizedValues: rewrite.addComputedTensor(weight, {
        name: names.quantizedValues,
        ...quantizedValues,
      }),
      scales: rewrite.addComputedTensor(weight, {
        name: names.scales,
        dims: scales,
        dataType: half ? DataType.FLOAT16 : DataType.FLOAT,
        bytes: countElements(scales) * (half ? 2 : 4),
      }),
      zeroPoints:
        names.zeroPoints === undefined
          ? undefined
          : rewrite.addComputedTensor(weight, { name: names.zeroPoints, ...zeroPoints }),
    },
  });
  rewrite.removeWeight(weight);
  return names;
}
