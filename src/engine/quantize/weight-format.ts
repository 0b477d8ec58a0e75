import type { AffineFormat } from "./kernels/affine-parameters.ts";
import type { BlockFormat, MatrixShape } from "./kernels/block-format.ts";

/** 8-bit values of a weight with one scale, or one for each slice along an axis. */
export interface AffineStorage {
  readonly kind: "affine";
  readonly axis: number | null;
  /** Leading axes of a batch of matrices, each of which has scales of its own. */
  readonly batchAxes: number;
  readonly format: AffineFormat;
}

/**
 * Values of a matrix with a scale for each block of inputs: `packed-blocks` as ONNX Runtime's
 * MatMulNBits takes them, `packed-rows` without what fills a row's last block, as its
 * GatherBlockQuantized does, `linear-blocks` as DequantizeLinear does.
 */
export interface BlockStorage {
  readonly kind: "packed-blocks" | "packed-rows" | "linear-blocks";
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

/** How the numbers of a weight are stored. */
type WeightStorage = QuantizedStorage | HalfStorage;

/** How a consumer takes a quantized weight; `restore` as floating point. */
export type WeightOperation =
  | "restore"
  | "gather-rows"
  | "gather-packed-rows"
  | "gather-blocks"
  | "integer-product"
  | "block-product"
  | "recurrent-product";

/**
 * How a weight becomes floating point again: `fold` by nodes that runtimes evaluate when they load
 * the model, `dequantize` by DequantizeLinear, which runs each time, alone or fused with a product.
 */
export type WeightRestoration = "fold" | "dequantize";

/** What replaces a weight: plain data, which the plan has for each weight. */
export interface WeightFormat<Storage extends WeightStorage = WeightStorage> {
  readonly storage: Storage;
  /** One for each consumer of a quantized weight. */
  readonly operations: readonly WeightOperation[];
  /** Null where no consumer takes a quantized weight as floating point. */
  readonly restoration: WeightRestoration | null;
}

export type QuantizedFormat = WeightFormat<QuantizedStorage>;
