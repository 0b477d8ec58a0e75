import { findOffsetBlock } from "../../checkpoints/encodings.ts";
import { at } from "../../onnx/at.ts";
import { findGatheredAxes, findProductMatrix, gathersRows } from "./consumer-matrix.ts";
import { isRecurrentProduct, planRecurrentStorage } from "./quantize-lstm.ts";
import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { lacksDotProducts, type Target } from "../../../contract/jobs/target.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { findPayload } from "../../onnx/payload.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { channelAxis, operatorName } from "../channel-axis.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import { findDialect } from "../dialects.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import { type BlockFormat, countBlocks, type MatrixShape } from "../kernels/block-format.ts";
import { Obstacle } from "../obstacle.ts";
import type {
  AffineOperation,
  AffineStorage,
  BlockOperation,
  BlockStorage,
} from "../weight-format.ts";

export interface RecipeForTarget {
  readonly recipe: Recipe;
  readonly target: Target;
}

export type QuantizedScheme = Exclude<Recipe["scheme"], "fp16">;

/** A way to store a weight, and the operations that consumers may have on it. */
export interface StorageCandidate<Storage, Operation> {
  readonly storage: Storage;
  readonly operations: readonly Operation[];
  /** Operations that the scheme is about: one consumer at least must have one; absent for none. */
  readonly required: readonly Operation[] | undefined;
}

export type Candidate =
  | StorageCandidate<AffineStorage, AffineOperation>
  | StorageCandidate<BlockStorage, BlockOperation>;

/** Candidates of a scheme, the best first. The reason of the last one is the one to report. */
export function listCandidates(
  weight: Weight,
  options: RecipeForTarget & { readonly model: OnnxModel; readonly takesRecurrent: boolean },
  scheme: QuantizedScheme,
): readonly (Candidate | Obstacle)[] {
  const { recipe } = options;
  const int8 = { type: "int8", symmetric: recipe.symmetric, reduceRange: false } as const;
  switch (scheme) {
    case "int8-dynamic": {
      const integers = chooseIntegers(options);
      const storage = planAffineStorage(weight, recipe, integers);
      const required = ["integer-product"] as const;
      const product = candidateOf(storage, [...required, "gather-rows"], required);
      if (!options.takesRecurrent || !canQuantizeLstm(options)) return [product];
      return [...listRecurrentCandidates(weight, recipe, integers), product];
    }
    case "int8-static": {
      const required = ["static-product"] as const;
      return [candidateOf(planStaticStorage(weight, recipe), required, required)];
    }
    case "int4-weight": {
      const ofOffsets = listOffsetCandidates(weight, options, scheme);
      return [...ofOffsets, ...listBlockCandidates(weight, recipe, 4)];
    }
    case "int8-weight": {
      const storage = planAffineStorage(weight, recipe, int8);
      const affine = candidateOf(storage, ["gather-rows"]);
      const blocks = recipe.granularity === "block" ? listBlockCandidates(weight, recipe, 8) : [];
      return [...listOffsetCandidates(weight, options, scheme), ...blocks, affine];
    }
  }
}

function candidateOf<Storage, Operation extends AffineOperation | BlockOperation>(
  storage: Storage | Obstacle,
  operations: readonly Operation[],
  required?: readonly Operation[],
): StorageCandidate<Storage, Operation> | Obstacle {
  return storage instanceof Obstacle ? storage : { storage, operations, required };
}

/**
 * The integers of products with uint8 activations. Without dot products, x86 processors add pairs
 * of such products in 16 bits, which saturate for int8 values beyond ±64 and never for uint8.
 */
function chooseIntegers({ recipe, target }: RecipeForTarget): AffineFormat {
  const { symmetric, reduceRange } = recipe;
  const type = !reduceRange && lacksDotProducts(target) ? "uint8" : "int8";
  return { type, symmetric, reduceRange };
}

/** ONNX Runtime has DynamicQuantizeLSTM only for processors. */
function canQuantizeLstm({ recipe, target }: RecipeForTarget): boolean {
  return recipe.operators === "contrib" && target.executionProvider === "cpu";
}

function listRecurrentCandidates(
  weight: Weight,
  { granularity }: Recipe,
  integers: AffineFormat,
): readonly (Candidate | Obstacle)[] {
  if (!weight.consumers.some(isRecurrentProduct)) return [];
  const storage = planRecurrentStorage(weight, granularity, integers);
  return [candidateOf(storage, ["recurrent-product"], ["recurrent-product"])];
}

function listOffsetCandidates(
  weight: Weight,
  { recipe, model }: RecipeForTarget & { readonly model: OnnxModel },
  scheme: QuantizedScheme,
): (Candidate | Obstacle)[] {
  const ofAll = recipe.offsets === "all" && scheme === "int4-weight";
  const ofSource = recipe.offsets === "source" ? findSourceBlock(weight, model) : undefined;
  const blockSize = ofAll ? recipe.blockSize : ofSource;
  if (blockSize === undefined || recipe.operators !== "contrib") return [];
  const operations = ["offset-product"] as const;
  return [candidateOf(planOffsetStorage(weight, model, blockSize), operations, operations)];
}

/** Values of a block of 4 bits with an offset, where all of a weight has those in the checkpoint. */
function findSourceBlock(weight: Weight, model: OnnxModel): number | undefined {
  const payload = findPayload(model, weight.tensor);
  if (payload?.kind !== "checkpoint") return undefined;
  const [size, ...others] = new Set(
    payload.pieces.map((piece) =>
      piece.kind === "stored" ? findOffsetBlock(piece.encoding) : undefined,
    ),
  );
  return others.length === 0 ? size : undefined;
}

/** Inputs of products have three dimensions in the graph of a checkpoint, which others do not say. */
function planOffsetStorage(
  weight: Weight,
  model: OnnxModel,
  blockSize: number,
): BlockStorage | Obstacle {
  const format = { bits: 4, blockSize, symmetric: false, isOnGrid: true } as const;
  const storage = planBlockStorage(weight, "offset-blocks", format);
  if (storage instanceof Obstacle) return storage;
  const { order, k, n } = storage.shape;
  if (findPayload(model, weight.tensor)?.kind !== "checkpoint" || order === "kn") {
    return new Obstacle("is not a weight of a checkpoint, whose blocks can have offsets");
  }
  if (k % blockSize !== 0) {
    return new Obstacle(`has rows of ${k} values, not of whole blocks`);
  }
  return { ...storage, shape: { order, k: k + k / blockSize, n } };
}

function listBlockCandidates(
  weight: Weight,
  recipe: Recipe,
  bits: 4 | 8,
): (Candidate | Obstacle)[] {
  const { blockSize, symmetric } = recipe;
  const format = { bits, blockSize, symmetric };
  const packed = planBlockStorage(weight, "packed-blocks", format);
  const linear = planBlockStorage(weight, "linear-blocks", format);
  if (recipe.operators !== "contrib") {
    const gather = ["gather-packed-rows"] as const;
    return [candidateOf(packed, gather, gather), candidateOf(linear, [])];
  }
  if (!(linear instanceof Obstacle) && linear.matrices > 1) return [candidateOf(linear, [])];
  const operations = ["block-product", "gather-blocks", "gather-packed-rows"] as const;
  if (!weight.consumers.every((consumer) => gathersRows(weight, consumer))) {
    return [candidateOf(packed, operations)];
  }
  const rows = planBlockStorage(weight, "packed-rows", format);
  return [candidateOf(packed, operations, operations), candidateOf(rows, operations)];
}

/** Fewest rows of a matrix whose columns have scales of their own: they take room. */
const minBatchRows = 16;

/** A scale for each channel where all consumers have their channels along one axis. */
function planAffineStorage(
  weight: Weight,
  { granularity }: Recipe,
  format: AffineFormat,
): AffineStorage | Obstacle {
  const axes = findChannelAxes(weight);
  if (axes instanceof Obstacle) return axes;
  if (granularity !== "tensor" && isMatrixBatch(weight)) {
    const rank = weight.tensor.dims.length;
    return { kind: "affine", axis: rank - 1, batchAxes: rank - 2, format };
  }
  const [axis] = granularity !== "tensor" && axes.size === 1 ? axes : [];
  return { kind: "affine", axis: axis ?? null, batchAxes: 0, format };
}

function planStaticStorage(weight: Weight, recipe: Recipe): AffineStorage | Obstacle {
  const dialect = findDialect(recipe);
  const hasScales = weight.consumers.every(({ node }) =>
    dialect.channelScales.has(operatorName(node)),
  );
  const storage = planAffineStorage(
    weight,
    { ...recipe, granularity: hasScales ? recipe.granularity : "tensor" },
    { type: "int8", symmetric: true, reduceRange: false },
  );
  return storage instanceof Obstacle ? storage : { ...storage, dialect };
}

/** Whether every consumer takes a weight as matrices, one after the other. */
function isMatrixBatch(weight: Weight): boolean {
  const dims = weightDims(weight);
  const [rows = 1] = dims.slice(-2);
  const isBatch = dims.length > 2 && countElements(dims.slice(0, -2)) > 1;
  return (
    isBatch &&
    rows >= minBatchRows &&
    weight.consumers.every(
      (consumer) => gathersRows(weight, consumer) || isBatchedProduct(weight, consumer),
    )
  );
}

function isBatchedProduct(weight: Weight, { node, input, view }: WeightConsumer): boolean {
  const rank = weight.tensor.dims.length;
  const [last] = view.axes?.slice(-1) ?? [];
  const operator = operatorName(node);
  const isProduct = operator === "MatMul" ? input === 1 : operator === "com.microsoft:MoE";
  return isProduct && last?.source === rank - 1;
}

/** The axes along which consumers take a weight's channels, or why one of them has none. */
function findChannelAxes({ consumers }: Weight): Set<number> | Obstacle {
  const axes = new Set<number>();
  for (const consumer of consumers) {
    const axis = findChannelAxis(consumer);
    if (axis === undefined) {
      const operator = operatorName(consumer.node);
      const input = `input ${consumer.input} of ${operator}`;
      return new Obstacle(`is ${input}, which has no form for it in fewer bits`);
    }
    axes.add(axis);
  }
  return axes;
}

/** The axis of the weight itself; 0 where its elements were moved in another way. */
function findChannelAxis(consumer: WeightConsumer): number | undefined {
  const { axes } = consumer.view;
  const axis = channelAxis(consumer, axes?.length ?? 2);
  if (axis === undefined) return undefined;
  return axes?.[axis]?.source ?? 0;
}

/** Blocks along the inputs of the products that take a weight, or along rows that are gathered. */
function planBlockStorage(
  weight: Weight,
  kind: BlockStorage["kind"],
  format: BlockFormat,
): BlockStorage | Obstacle {
  if (kind === "linear-blocks" && isMatrixBatch(weight)) return planBatchedBlocks(weight, format);
  const shape = planMatrixShape(weight);
  if (shape instanceof Obstacle) return shape;
  if (kind === "linear-blocks" && shape.order === "nk" && !rowsFillBytes(shape, format)) {
    const rows = `rows of ${shape.k} values`;
    return new Obstacle(`has ${rows}, whose codes or zero points do not fill whole bytes`);
  }
  return { kind, matrices: 1, shape, format };
}

function planBatchedBlocks(weight: Weight, format: BlockFormat): BlockStorage | Obstacle {
  const dims = weightDims(weight);
  const [k = 1, n = 1] = dims.slice(-2);
  if (k % format.blockSize !== 0) {
    return new Obstacle(`has matrices of ${k} inputs, not of whole blocks`);
  }
  if ((k * n * format.bits) % 16 !== 0) {
    return new Obstacle("has matrices that do not fill whole bytes");
  }
  const matrices = countElements(dims.slice(0, -2));
  return { kind: "linear-blocks", matrices, shape: { order: "kn", k, n }, format };
}

function planMatrixShape(weight: Weight): MatrixShape | Obstacle {
  const dims = weightDims(weight);
  const [first, second] = dims.flatMap((size, axis) => (size === 1 ? [] : [axis]));
  if (first === undefined || second === undefined || dims.filter((size) => size > 1).length > 2) {
    const count = dims.length === 1 ? "1 dimension" : `${dims.length} dimensions`;
    return new Obstacle(`has ${count}, and blocks are cut from matrices`);
  }
  const axes = weight.consumers.map((consumer) => findInputAxis(weight, consumer));
  const inputAxes = new Set(axes.filter((axis) => typeof axis === "number"));
  const [inputAxis] = inputAxes;
  if (inputAxis === undefined) {
    return axes.find((axis) => axis instanceof Obstacle) ?? new Obstacle("is not used");
  }
  if (inputAxes.size > 1) return new Obstacle("is used both as it is and transposed");
  const sizes = { first: at(dims, first), second: at(dims, second) };
  return inputAxis === first
    ? { order: "kn", k: sizes.first, n: sizes.second }
    : { order: "nk", k: sizes.second, n: sizes.first };
}

/** The axis along which a consumer's products sum, or along which rows lie. */
function findInputAxis(weight: Weight, consumer: WeightConsumer): number | Obstacle {
  const gathered = findGatheredAxes(weight, consumer);
  if (gathered !== undefined) return gathered.values;
  const matrix = findProductMatrix(consumer);
  return matrix instanceof Obstacle ? matrix : matrix.k.source;
}

function rowsFillBytes({ k }: MatrixShape, format: BlockFormat): boolean {
  if (format.bits === 8) return true;
  return k % 2 === 0 && (format.symmetric || countBlocks(k, format) % 2 === 0);
}
