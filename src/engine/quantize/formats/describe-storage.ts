import { at } from "../../onnx/at.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { type Weight, weightDims } from "../find-weights.ts";
import { countBlocks, type BlockFormat } from "../kernels/block-format.ts";
import { floatBytes } from "../source-weight.ts";
import type { AffineStorage, BlockStorage, QuantizedStorage } from "../weight-format.ts";

interface StoredTensor {
  readonly dims: readonly number[];
  readonly dataType: number;
  readonly bytes: number;
}

/** The tensors that replace a weight. Scales have the weight's element type. */
interface StoredTensors {
  readonly quantizedValues: StoredTensor;
  readonly scaleDims: readonly number[];
  readonly zeroPoints: StoredTensor | undefined;
}

/** Bytes of quantized values, scales and zero points. */
export function countStorageBytes(weight: Weight, storage: QuantizedStorage): number {
  const { quantizedValues, scaleDims, zeroPoints } = describeStorage(weight, storage);
  const scaleBytes = countElements(scaleDims) * floatBytes(weight);
  return quantizedValues.bytes + scaleBytes + (zeroPoints?.bytes ?? 0);
}

export function describeStorage(weight: Weight, storage: QuantizedStorage): StoredTensors {
  switch (storage.kind) {
    case "affine":
      return describeAffineTensors(weight, storage);
    case "packed-blocks":
    case "packed-rows":
    case "offset-blocks":
      return describePackedBlocks(storage);
    case "linear-blocks":
      return describeLinearBlocks(storage);
  }
}

function describeAffineTensors(weight: Weight, storage: AffineStorage): StoredTensors {
  const { axis, batchAxes, format } = storage;
  const dims = weightDims(weight);
  const vector = axis === null ? [] : [at(dims, axis)];
  const scaleDims = batchAxes === 0 ? vector : broadcastScaleDims(weight, storage);
  const dataType = format.type === "int8" ? DataType.INT8 : DataType.UINT8;
  const integers = (shape: readonly number[]) => {
    return { dims: shape, dataType, bytes: countElements(shape) };
  };
  const isCentred = format.symmetric && format.type === "int8";
  return {
    quantizedValues: integers(dims),
    scaleDims,
    zeroPoints: isCentred ? undefined : integers(scaleDims),
  };
}

/** Shape of scales and zero points that can be broadcast to the weight. */
export function broadcastScaleDims(weight: Weight, { axis, batchAxes }: AffineStorage): number[] {
  return weightDims(weight).map((dim, at) => (at === axis || at < batchAxes ? dim : 1));
}

/** Values [N, blocks, bytes] or [N, bytes], scales [N, blocks], zero points [N, bytes]. */
function describePackedBlocks({ kind, shape, format }: BlockStorage): StoredTensors {
  const { k, n } = shape;
  const { bits, blockSize, symmetric } = format;
  const blocks = countBlocks(k, format);
  const rowDims =
    kind === "packed-rows" ? [Math.ceil((k * bits) / 8)] : [blocks, (blockSize * bits) / 8];
  const packed = (dims: readonly number[]) => {
    return { dims, dataType: DataType.UINT8, bytes: countElements(dims) };
  };
  return {
    quantizedValues: packed([n, ...rowDims]),
    scaleDims: [n, blocks],
    zeroPoints: symmetric ? undefined : packed([n, Math.ceil((blocks * bits) / 8)]),
  };
}

/** Values in the order of the matrix; scales have a row's or column's blocks in their place. */
function describeLinearBlocks({ matrices, shape, format }: BlockStorage): StoredTensors {
  const { order, k, n } = shape;
  const blocks = countBlocks(k, format);
  const dataType = findBlockDataType(format);
  const batch = matrices === 1 ? [] : [matrices];
  const orderDims = (inputs: number) => [...batch, ...(order === "kn" ? [inputs, n] : [n, inputs])];
  const packed = (inputs: number) => {
    const dims = orderDims(inputs);
    return { dims, dataType, bytes: Math.ceil((countElements(dims) * format.bits) / 8) };
  };
  return {
    quantizedValues: packed(k),
    scaleDims: orderDims(blocks),
    zeroPoints: format.symmetric ? undefined : packed(blocks),
  };
}

function findBlockDataType({ bits, symmetric }: BlockFormat): number {
  if (bits === 4) return symmetric ? DataType.INT4 : DataType.UINT4;
  return symmetric ? DataType.INT8 : DataType.UINT8;
}
