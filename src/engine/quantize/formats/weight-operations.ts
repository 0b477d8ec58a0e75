import {
  type AxisRange,
  findReplaceableProduct,
  gathersRows,
  requireProductMatrix,
} from "./consumer-matrix.ts";
import { gatherAffineRows, gatherPackedRows } from "./gather-rows.ts";
import { intAttributes } from "./int-attributes.ts";
import { multiplyIntegers } from "./multiply-integers.ts";
import { findRecurrentObstacle, quantizeLstm } from "./quantize-lstm.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";
import type { StoredWeight } from "./stored-weight.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { Weight, WeightConsumer } from "../find-weights.ts";
import type { NodeDescription } from "../graph-rewrite.ts";
import { weightDims } from "../weight-dims.ts";
import type {
  AffineStorage,
  BlockStorage,
  QuantizedStorage,
  WeightOperation,
} from "../weight-format.ts";

interface OperationKind {
  /** First version of the standard operator set that has its operators. */
  readonly opset: number;
  /** Why a consumer cannot take the stored weight so; the weight's name starts the sentence. */
  readonly findObstacle: (
    weight: Weight,
    consumer: WeightConsumer,
    storage: QuantizedStorage,
  ) => string | undefined;
  readonly write: (
    stored: StoredWeight,
    consumer: WeightConsumer,
    storage: QuantizedStorage,
  ) => void;
}

/** Every way in which a node can take a quantized weight without its being restored before. */
export const weightOperations: Readonly<
  Record<Exclude<WeightOperation, "restore">, OperationKind>
> = {
  "gather-rows": {
    opset: 7,
    findObstacle: (weight, consumer, storage) =>
      gathersRows(weight, consumer) && hasScalesOfRows(requireAffine(storage))
        ? undefined
        : "is not gathered by rows",
    write: (stored, consumer, storage) =>
      gatherAffineRows(stored, consumer, requireAffine(storage)),
  },
  "gather-packed-rows": {
    opset: 13,
    findObstacle: (weight, consumer, storage) => {
      const { shape, format } = requireBlocks(storage);
      const isWhole = shape.k % format.blockSize === 0;
      return gathersRows(weight, consumer) && isWhole && shape.order === "nk"
        ? undefined
        : "is not gathered by rows of whole blocks";
    },
    write: (stored, consumer, storage) =>
      gatherPackedRows(stored, consumer, requireBlocks(storage)),
  },
  "gather-blocks": {
    opset: 0,
    findObstacle: (weight, consumer, storage) => {
      const { kind, shape, format } = requireBlocks(storage);
      if (!gathersRows(weight, consumer) || shape.order !== "nk") return "is not gathered by rows";
      if (consumer.view.elementType === DataType.BFLOAT16) return "is gathered in bfloat16";
      if (kind === "packed-rows" && (shape.k * format.bits) % 8 !== 0) {
        return "has rows of an odd length, which 4-bit values cannot be packed in";
      }
      return kind === "packed-rows" || shape.k % format.blockSize === 0
        ? undefined
        : `has rows of ${shape.k} values, not of whole blocks`;
    },
    write: (stored, consumer, storage) => gatherBlocks(stored, consumer, requireBlocks(storage)),
  },
  "integer-product": {
    opset: 11,
    findObstacle: (_, consumer, storage) => {
      const matrix = findReplaceableProduct(consumer);
      if (typeof matrix === "string") return matrix;
      if (consumer.view.elementType !== DataType.FLOAT) {
        return "is not float32, the only type of dynamically quantized inputs";
      }
      const { axis, batchAxes } = requireAffine(storage);
      return batchAxes === 0 && (axis === null || axis === matrix.n.source)
        ? undefined
        : "has a scale for each input of a product";
    },
    write: (stored, consumer, storage) =>
      multiplyIntegers(stored, consumer, requireAffine(storage)),
  },
  "block-product": {
    opset: 0,
    findObstacle: (weight, consumer, storage) => {
      const matrix = findReplaceableProduct(consumer);
      if (typeof matrix === "string") return matrix;
      const isWhole = isWholeAxis(weight, matrix.k) && isInputAxis(weight, matrix.k, storage);
      return isWhole ? undefined : "is used by products that do not sum along whole blocks";
    },
    write: (stored, consumer, storage) => multiplyBlocks(stored, consumer, requireBlocks(storage)),
  },
  "recurrent-product": {
    opset: 7,
    findObstacle: (_, consumer, storage) => findRecurrentObstacle(consumer, requireAffine(storage)),
    write: (stored, consumer, storage) => quantizeLstm(stored, consumer, requireAffine(storage)),
  },
};

function hasScalesOfRows({ axis, batchAxes }: AffineStorage): boolean {
  return axis === null || axis === 0 || batchAxes > 0;
}

function requireAffine(storage: QuantizedStorage): AffineStorage {
  if (storage.kind === "affine") return storage;
  throw new TypeError(`Operations on affine values were planned for ${storage.kind}`);
}

function requireBlocks(storage: QuantizedStorage): BlockStorage {
  if (storage.kind !== "affine") return storage;
  throw new TypeError("Operations on blocks were planned for affine values");
}

function isWholeAxis(weight: Weight, { source, size }: AxisRange): boolean {
  return weightDims(weight)[source] === size;
}

function isInputAxis(weight: Weight, { source }: AxisRange, storage: QuantizedStorage): boolean {
  const [first] = weightDims(weight).flatMap((size, axis) => (size === 1 ? [] : [axis]));
  return (source === first) === (requireBlocks(storage).shape.order === "kn");
}

/** Products by `accuracy_level` 4 round activations to int8, a scale for each block. */
const int8AccuracyLevel = 4;

/** Multiplies by ONNX Runtime's MatMulNBits. */
function multiplyBlocks(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { shape: { k }, format: { bits, blockSize } }: BlockStorage,
): void {
  const { rewrite } = stored;
  rewrite.requireContribOperators();
  const { n } = requireProductMatrix(consumer);
  const { elementType } = consumer.view;
  const tensors = [stored.quantizedValues, stored.castScales(elementType), stored.zeroPoints];
  const inputs = tensors.flatMap((name) => {
    return name === undefined ? [] : [stored.sliceOutputs(name, n)];
  });
  const attribute = intAttributes({
    K: k,
    N: n.size,
    bits,
    block_size: blockSize,
    accuracy_level: int8AccuracyLevel,
  });
  const multiply = (left: string, steps: NodeDescription[]) => {
    const product = rewrite.names.allocate(`${consumer.node.output[0]}_product`);
    const input = [left, ...inputs];
    const domain = "com.microsoft";
    steps.push({ opType: "MatMulNBits", domain, input, output: [product], attribute });
    return product;
  };
  replaceMatrixProduct(rewrite, { use: consumer, elementType, multiply });
}

/** Gathers rows by ONNX Runtime's GatherBlockQuantized. */
function gatherBlocks(
  stored: StoredWeight,
  { node, view: { elementType } }: WeightConsumer,
  { shape: { k, n }, format: { bits, blockSize } }: BlockStorage,
): void {
  const { rewrite } = stored;
  rewrite.requireContribOperators();
  const [, indices = ""] = node.input;
  const values = stored.reshape(stored.quantizedValues, [n, (k * bits) / 8]);
  const parameters = stored.zeroPoints === undefined ? [] : [stored.zeroPoints];
  const gather = {
    opType: "GatherBlockQuantized",
    domain: "com.microsoft",
    input: [values, indices, stored.castScales(elementType), ...parameters],
    output: node.output,
    attribute: intAttributes({ bits, block_size: blockSize, gather_axis: 0, quantize_axis: 1 }),
  };
  rewrite.replaceNode(node, [gather]);
}
