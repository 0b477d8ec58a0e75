import type { AffineFormat } from "./kernels/affine-parameters.ts";
import type { Dialect } from "./dialects.ts";
import type { InputScales } from "./kernels/input-scales.ts";
import type { BlockFormat, MatrixShape } from "./kernels/block-format.ts";

/** 8-bit values of a weight with one scale, or one for each slice along an axis. */
export interface AffineStorage {
  readonly kind: "affine";
  readonly axis: number | null;
  /** Leading axes of a batch of matrices, each of which has scales of its own. */
  readonly batchAxes: number;
  readonly format: AffineFormat;
  /** Of the runtime, where operators take the weight with activations rounded in advance. */
  readonly dialect?: Dialect;
  /** That the weight is multiplied by, and the input of its products divided. */
  readonly inputScales?: InputScales;
}

/**
 * Values of a matrix with a scale for each block of inputs: `packed-blocks` as ONNX Runtime's
 * MatMulNBits takes them, `packed-rows` without what fills a row's last block, as its
 * GatherBlockQuantized does, `linear-blocks` as DequantizeLinear does. `offset-blocks` are
 * `packed-blocks` that have the sum of each block's inputs as an input too, after all others: its
 * weight is the offset of the block.
 */
export interface BlockStorage {
  readonly kind: "packed-blocks" | "packed-rows" | "linear-blocks" | "offset-blocks";
  /** Matrices of a batch, which only `linear-blocks` can have more than one of. */
  readonly matrices: number;
  /** Of one matrix. */
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
}

/** Half precision, which operators compute with. */
interface HalfStorage {
  readonly kind: "half";
  /** Whether the original stays, for operators that work in single precision. */
  readonly isKept: boolean;
}

/** How the numbers of a weight are stored as integers. */
export type QuantizedStorage = AffineStorage | BlockStorage;

/** How a consumer takes a weight whose storage is affine, without its being restored before. */
export type AffineOperation =
  | "gather-rows"
  | "integer-product"
  | "recurrent-product"
  | "static-product";

/** How a consumer takes a weight in blocks, without its being restored before. */
export type BlockOperation =
  | "gather-packed-rows"
  | "gather-blocks"
  | "block-product"
  | "offset-product";

/** How a consumer takes a quantized weight; `restore` as floating point. */
export type WeightOperation = "restore" | AffineOperation | BlockOperation;

/**
 * How a weight becomes floating point again: `fold` by nodes that runtimes evaluate when they load
 * the model, `dequantize` by DequantizeLinear, which runs each time, alone or fused with a product.
 */
export type WeightRestoration = "fold" | "dequantize";

/** What replaces a weight: plain data, which the plan has for each weight. */
export interface StorageFormat<Storage, Operation> {
  readonly storage: Storage;
  /** One for each consumer of a quantized weight. */
  readonly operations: readonly ("restore" | Operation)[];
  /** Null where no consumer takes a quantized weight as floating point. */
  readonly restoration: WeightRestoration | null;
}

type HalfFormat = StorageFormat<HalfStorage, never>;

export type QuantizedFormat =
  | StorageFormat<AffineStorage, AffineOperation>
  | StorageFormat<BlockStorage, BlockOperation>;

export type WeightFormat = QuantizedFormat | HalfFormat;

export function isHalf(format: WeightFormat): format is HalfFormat {
  return format.storage.kind === "half";
}

/** Tells what can be done on affine storage from what can be done on blocks. */
export function isAffine<T extends { readonly storage: QuantizedStorage }>(
  each: T,
): each is Extract<T, { readonly storage: AffineStorage }> {
  return each.storage.kind === "affine";
}
