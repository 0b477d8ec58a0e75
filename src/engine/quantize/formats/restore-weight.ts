import { at } from "../../onnx/at.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { countBlocks } from "../kernels/block-format.ts";
import { broadcastScaleDims } from "./describe-storage.ts";
import { operatorName } from "../channel-axis.ts";
import { weightDims } from "../find-weights.ts";
import { intAttributes } from "../../onnx/node-attributes.ts";
import type { StoredWeight } from "./stored-weight.ts";
import { unpackNibbles, unpackZeroPoints } from "./unpack-nibbles.ts";
import type {
  AffineStorage,
  BlockStorage,
  WeightRestoration,
  QuantizedStorage,
} from "../weight-format.ts";

/** Adds the nodes that compute a weight, under its own name, from what is stored. */
export function restoreWeight(
  stored: StoredWeight,
  storage: QuantizedStorage,
  restoration: WeightRestoration,
): void {
  if (restoration === "dequantize") addDequantizeLinear(stored, storage);
  else foldWeight(stored, storage);
}

function addDequantizeLinear(stored: StoredWeight, storage: QuantizedStorage): void {
  const { quantizedValues, scales, zeroPoints = writeZeros(stored, storage) } = stored;
  const input = [quantizedValues, scales, ...(zeroPoints === undefined ? [] : [zeroPoints])];
  const attribute = intAttributes(dequantizeAttributes(storage));
  const node = { opType: "DequantizeLinear", input, attribute };
  const dims = weightDims(stored.weight);
  if (storage.kind === "affine" || dims.length === 2) return stored.addLastNode(node);
  // Blocks are stored of a matrix, without the weight's axes of size 1.
  const matrix = stored.addNode("matrix", node);
  stored.addLastNode({ opType: "Reshape", input: [matrix, stored.integers(dims)] });
}

/** The zero points of a symmetric weight, for a runtime that looks for them. */
function writeZeros(stored: StoredWeight, storage: QuantizedStorage): string | undefined {
  if (storage.kind !== "affine") return undefined;
  const { axis, dialect } = storage;
  const areNeeded = stored.weight.consumers.some(({ node }) =>
    dialect?.writtenZeroPoints.has(operatorName(node)),
  );
  if (!areNeeded) return undefined;
  return stored.zeros(axis === null ? [] : [at(weightDims(stored.weight), axis)]);
}

function dequantizeAttributes(storage: QuantizedStorage): Record<string, number> {
  if (storage.kind === "affine") return storage.axis === null ? {} : { axis: storage.axis };
  const { shape, format } = storage;
  return { axis: shape.order === "kn" ? 0 : 1, block_size: format.blockSize };
}

/**
 * (values - zero points) · scales in float32, by operators that ONNX Runtime evaluates when it
 * loads the model; it never does so with DequantizeLinear.
 */
function foldWeight(stored: StoredWeight, storage: QuantizedStorage): void {
  const shaped = shapeForScales(stored, storage);
  let numbers = shaped.values;
  if (shaped.zeroPoints !== undefined) {
    numbers = stored.addNode("centred", { opType: "Sub", input: [numbers, shaped.zeroPoints] });
  }
  const { dataType } = stored.weight.tensor;
  const isFloat = dataType === DataType.FLOAT;
  const product = { opType: "Mul", input: [numbers, shaped.scales] };
  if (isFloat && shaped.finish === undefined) return stored.addLastNode(product);
  const scaled = stored.addNode("scaled", product);
  const attribute = intAttributes({ to: dataType });
  if (shaped.finish === undefined) {
    return stored.addLastNode({ opType: "Cast", input: [scaled], attribute });
  }
  const source = isFloat
    ? scaled
    : stored.addNode("typed", { opType: "Cast", input: [scaled], attribute });
  shaped.finish(source);
}

interface ShapedOperands {
  /** In float32, of shapes that can be broadcast to one another. */
  readonly values: string;
  readonly scales: string;
  readonly zeroPoints: string | undefined;
  /** Gives the product the weight's shape and name. */
  readonly finish: ((product: string) => void) | undefined;
}

function shapeForScales(stored: StoredWeight, storage: QuantizedStorage): ShapedOperands {
  switch (storage.kind) {
    case "affine":
      return shapeAffine(stored, storage);
    case "packed-blocks":
      return shapePackedBlocks(stored, storage);
    case "packed-rows":
    case "offset-blocks":
      throw new TypeError(`A weight as ${storage.kind} is never restored`);
    case "linear-blocks":
      return shapeLinearBlocks(stored, storage);
  }
}

function shapeAffine(stored: StoredWeight, storage: AffineStorage): ShapedOperands {
  const { axis, batchAxes } = storage;
  const scaleDims = broadcastScaleDims(stored.weight, storage);
  const isPlaced = axis === null || batchAxes > 0 || axis === scaleDims.length - 1;
  const place = (name: string) => (isPlaced ? name : stored.reshape(name, scaleDims));
  const { zeroPoints } = stored;
  return {
    values: stored.cast(stored.quantizedValues, DataType.FLOAT),
    scales: stored.cast(place(stored.scales), DataType.FLOAT),
    zeroPoints: zeroPoints && stored.cast(place(zeroPoints), DataType.FLOAT),
    finish: undefined,
  };
}

function shapePackedBlocks(stored: StoredWeight, { shape, format }: BlockStorage): ShapedOperands {
  const { order, k, n } = shape;
  const { bits, blockSize } = format;
  const blocks = countBlocks(k, format);
  const zeroPoints = unpackZeroPoints(stored, k, n, format);
  const numbers =
    bits === 4
      ? unpackNibbles(stored, stored.quantizedValues, [n, blocks, blockSize / 2])
      : stored.cast(stored.quantizedValues, DataType.FLOAT);
  const values = stored.reshape(numbers, [n, blocks, blockSize]);
  return {
    values,
    scales: stored.cast(stored.reshape(stored.scales, [n, blocks, 1]), DataType.FLOAT),
    zeroPoints:
      zeroPoints === undefined
        ? stored.float(2 ** (bits - 1))
        : stored.reshape(zeroPoints, [n, blocks, 1]),
    finish: (product) => {
      const rows = stored.reshape(product, [n, blocks * blockSize]);
      const whole = blocks * blockSize === k ? rows : stored.slice(rows, 1, { start: 0, size: k });
      const matrix = order === "nk" ? whole : stored.transpose(whole);
      const input = [matrix, stored.integers(weightDims(stored.weight))];
      stored.addLastNode({ opType: "Reshape", input });
    },
  };
}

function shapeLinearBlocks(stored: StoredWeight, storage: BlockStorage): ShapedOperands {
  const { matrices, shape, format } = storage;
  const { order, k, n } = shape;
  const blocks = countBlocks(k, format);
  const split = (within: number) =>
    order === "kn" ? [matrices, blocks, within, n] : [matrices, n, blocks, within];
  const { zeroPoints } = stored;
  const float = (name: string) => stored.cast(name, DataType.FLOAT);
  return {
    values: stored.reshape(float(stored.quantizedValues), split(format.blockSize)),
    scales: stored.reshape(float(stored.scales), split(1)),
    zeroPoints: zeroPoints && stored.reshape(float(zeroPoints), split(1)),
    finish: (product) => {
      const input = [product, stored.integers(weightDims(stored.weight))];
      stored.addLastNode({ opType: "Reshape", input });
    },
  };
}
