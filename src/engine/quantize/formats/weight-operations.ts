import {
  type AxisRange,
  findGatheredAxes,
  findReplaceableProduct,
  gathersRows,
  requireProductMatrix,
} from "./consumer-matrix.ts";
import { gatherAffineRows, gatherPackedRows } from "./gather-rows.ts";
import { intAttributes } from "../../onnx/node-attributes.ts";
import { multiplyIntegers } from "./multiply-integers.ts";
import { findStaticObstacle, multiplyStatic } from "./multiply-static.ts";
import { findRecurrentObstacle, quantizeLstm } from "./quantize-lstm.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";
import type { StoredWeight } from "./stored-weight.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import type { NodeDescription } from "../graph-rewrite.ts";
import { Obstacle } from "../obstacle.ts";
import type {
  AffineOperation,
  AffineStorage,
  BlockOperation,
  BlockStorage,
} from "../weight-format.ts";

interface OperationKind<Storage> {
  /** First version of the standard operator set that has its operators. */
  readonly opset: number;
  /** Why a consumer cannot take the stored weight so; the weight's name starts the sentence. */
  readonly findObstacle: (
    weight: Weight,
    consumer: WeightConsumer,
    storage: Storage,
  ) => Obstacle | undefined;
  readonly write: (stored: StoredWeight, consumer: WeightConsumer, storage: Storage) => void;
}

/** Ways in which nodes can take a weight of one kind of storage. */
export type OperationTable<Storage, Operation extends string> = Readonly<
  Record<Operation, OperationKind<Storage>>
>;

export const affineOperations: OperationTable<AffineStorage, AffineOperation> = {
  "gather-rows": {
    opset: 7,
    findObstacle: (weight, consumer, storage) =>
      gathersRows(weight, consumer) && hasScalesOfRows(storage)
        ? undefined
        : new Obstacle("is not gathered by rows"),
    write: gatherAffineRows,
  },
  "integer-product": {
    opset: 11,
    findObstacle: (_, consumer, { axis, batchAxes }) => {
      const matrix = findReplaceableProduct(consumer);
      if (matrix instanceof Obstacle) return matrix;
      if (consumer.view.elementType !== DataType.FLOAT) {
        return new Obstacle("is not float32, the only type of dynamically quantized inputs");
      }
      return batchAxes === 0 && (axis === null || axis === matrix.n.source)
        ? undefined
        : new Obstacle("has a scale for each input of a product");
    },
    write: multiplyIntegers,
  },
  "recurrent-product": {
    opset: 7,
    findObstacle: (_, consumer, storage) => findRecurrentObstacle(consumer, storage),
    write: quantizeLstm,
  },
  "static-product": {
    opset: 13,
    findObstacle: (_, consumer, storage) => findStaticObstacle(consumer, storage),
    write: multiplyStatic,
  },
};

export const blockOperations: OperationTable<BlockStorage, BlockOperation> = {
  "gather-packed-rows": {
    opset: 13,
    findObstacle: (weight, consumer, storage) => {
      const { shape, format } = storage;
      const isWhole = shape.k % format.blockSize === 0;
      return gathersStoredRows(weight, consumer, storage) && isWhole
        ? undefined
        : new Obstacle("is not gathered by rows of whole blocks");
    },
    write: gatherPackedRows,
  },
  "gather-blocks": {
    opset: 0,
    findObstacle: (weight, consumer, storage) => {
      const { kind, shape, format } = storage;
      if (!gathersStoredRows(weight, consumer, storage)) {
        return new Obstacle("is not gathered by rows");
      }
      const { elementType } = consumer.view;
      if (elementType === DataType.BFLOAT16) return new Obstacle("is gathered in bfloat16");
      if (elementType === DataType.DOUBLE) return new Obstacle("is used in float64");
      if (kind === "packed-rows" && (shape.k * format.bits) % 8 !== 0) {
        return new Obstacle("has rows of an odd length, which 4-bit values cannot be packed in");
      }
      return kind === "packed-rows" || shape.k % format.blockSize === 0
        ? undefined
        : new Obstacle(`has rows of ${shape.k} values, not of whole blocks`);
    },
    write: gatherBlocks,
  },
  "block-product": {
    opset: 0,
    findObstacle: findBlockProductObstacle,
    write: multiplyBlocks,
  },
  "offset-product": {
    opset: 13,
    findObstacle: findBlockProductObstacle,
    write: multiplyBlocks,
  },
};

const operations = { ...affineOperations, ...blockOperations };

/** First version of the standard operator set that has the operators of an operation. */
export function operationOpset(operation: AffineOperation | BlockOperation): number {
  return operations[operation].opset;
}

function findBlockProductObstacle(
  weight: Weight,
  consumer: WeightConsumer,
  storage: BlockStorage,
): Obstacle | undefined {
  const matrix = findReplaceableProduct(consumer);
  if (matrix instanceof Obstacle) return matrix;
  if (consumer.view.elementType === DataType.DOUBLE) return new Obstacle("is used in float64");
  const isWhole = isWholeAxis(weight, matrix.k) && isInputAxis(weight, matrix.k.source, storage);
  return isWhole
    ? undefined
    : new Obstacle("is used by products that do not sum along whole blocks");
}

function hasScalesOfRows({ axis, batchAxes }: AffineStorage): boolean {
  return axis === null || axis === 0 || batchAxes > 0;
}

function isWholeAxis(weight: Weight, { source, size }: AxisRange): boolean {
  return weightDims(weight)[source] === size;
}

/** Whether a consumer gathers rows of the matrix that blocks are stored of. */
function gathersStoredRows(
  weight: Weight,
  consumer: WeightConsumer,
  storage: BlockStorage,
): boolean {
  const gathered = findGatheredAxes(weight, consumer);
  return gathered !== undefined && isInputAxis(weight, gathered.values, storage);
}

function isInputAxis(weight: Weight, source: number, { shape }: BlockStorage): boolean {
  const [first] = weightDims(weight).flatMap((size, axis) => (size === 1 ? [] : [axis]));
  return (source === first) === (shape.order === "kn");
}

/** Products by `accuracy_level` 4 round activations to int8, a scale for each block. */
const int8AccuracyLevel = 4;
/** By 0 they round no activations. */
const fullAccuracyLevel = 0;

/** Multiplies by ONNX Runtime's MatMulNBits. */
function multiplyBlocks(
  stored: StoredWeight,
  consumer: WeightConsumer,
  storage: BlockStorage,
): void {
  const { rewrite } = stored;
  const {
    shape: { k },
    format: { bits, blockSize },
  } = storage;
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
    accuracy_level: losesCastScales(consumer) ? fullAccuracyLevel : int8AccuracyLevel,
  });
  const multiply = (left: string, steps: NodeDescription[]) => {
    const product = rewrite.names.allocate(`${consumer.node.output[0]}_product`);
    const isOffset = storage.kind === "offset-blocks";
    const input = [isOffset ? joinBlockSums(stored, left, storage) : left, ...inputs];
    const domain = "com.microsoft";
    steps.push({ opType: "MatMulNBits", domain, input, output: [product], attribute });
    return product;
  };
  replaceMatrixProduct(rewrite, { use: consumer, elementType, multiply });
}

/**
 * On CPUs ONNX Runtime casts scales in half precision beside operators that have none there, and by
 * `accuracy_level` 4 takes them for 0 where it does not evaluate the cast at load: in subgraphs.
 */
function losesCastScales({ scope, view: { elementType } }: WeightConsumer): boolean {
  return elementType === DataType.FLOAT16 && scope.outer !== undefined;
}

/** The inputs of products, with the sum of each block after them: once for all products. */
function joinBlockSums(
  stored: StoredWeight,
  inputs: string,
  { shape: { k }, format: { blockSize } }: BlockStorage,
): string {
  const { rewrite, weight } = stored;
  const key = `${inputs}\0${blockSize}`;
  const known = rewrite.joinedSums.get(key);
  if (known !== undefined) return known;
  const add = (part: string, node: Omit<NodeDescription, "output">) => {
    const output = rewrite.names.allocate(`${inputs}_${part}`);
    rewrite.prependNode(weight.scope.body, { ...node, output: [output] });
    return output;
  };
  const shape = stored.integers([0, 0, k / (blockSize + 1), blockSize]);
  const blocks = add("blocks", { opType: "Reshape", input: [inputs, shape] });
  const sums = add("sums", {
    opType: "ReduceSum",
    input: [blocks, stored.integers([3])],
    attribute: intAttributes({ keepdims: 0 }),
  });
  const attribute = intAttributes({ axis: 2 });
  const joined = add("joined", { opType: "Concat", input: [inputs, sums], attribute });
  rewrite.joinedSums.set(key, joined);
  return joined;
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
