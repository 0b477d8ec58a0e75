import type { ErrorSums } from "../kernels/error-sums.ts";
import type { RemoteFiles } from "../../checkpoints/remote-files.ts";
import type { TensorSource } from "../../onnx/read-tensor.ts";
import type { Destination } from "../../onnx/write-model.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";
import type { ChannelLayout } from "../kernels/channel-layout.ts";
import type { InputScales } from "../kernels/input-scales.ts";
import type { MeanInputs } from "./mean-errors.ts";

/** Indices of the payloads that a task computes. */
export interface TaskOutputs {
  readonly quantizedValues: number;
  readonly scales: number;
  readonly zeroPoints: number | undefined;
}

/** A bias that is added to products. */
export interface ProductBias {
  /** Zeros where it is undefined. */
  readonly source: TensorSource | undefined;
  readonly elements: number;
  /** Of codes, whose bias is in int32: its scales are input · weight. It is in float32 without. */
  readonly inputScale?: number;
  /** Of the product: with them, what rounding changes on average is subtracted. */
  readonly inputs?: MeanInputs;
}

/** Types of weights that can be quantized, and of their scales; tasks compute in float32. */
export type FloatType = "float32" | "float16" | "bfloat16";

/** What a task reads. */
export interface SourceWeight {
  /** Position among the model's weights. */
  readonly weight: number;
  readonly source: TensorSource;
  readonly sourceType: FloatType;
  readonly elements: number;
  readonly sourceBytes: number;
}

interface PlannedWeight extends SourceWeight {
  /** Bytes of all that the task computes. */
  readonly resultBytes: number;
}

/** Quantizes with one scale for each matrix or for each of its channels. */
export interface AffineTask extends PlannedWeight, ChannelLayout {
  readonly kind: "linear";
  /** Matrices of a batch, one after the other, with scales of their own; 1 for other tensors. */
  readonly matrices: number;
  readonly format: AffineFormat;
  /** That the weight is multiplied by before it is rounded. */
  readonly inputScales?: InputScales;
  readonly bias?: ProductBias;
  readonly scaleType: FloatType;
  readonly outputs: TaskOutputs & { readonly biasValues?: number; readonly biasScales?: number };
}

/** Second moments of a product's inputs, of one segment after the other, as `listSegments` has them. */
export interface MomentsFile {
  readonly path: string;
  /** Rows of inputs that were summed up. */
  readonly rows: number;
  /** Share of the mean diagonal that is added to it. */
  readonly damping: number;
  /** The errors beside the inputs that are of the product; absent where none were observed. */
  readonly errors?: { readonly first: number; readonly all: number };
}

/** Quantizes with a scale for each block of a matrix, or of each matrix of a batch. */
export interface BlockTask extends PlannedWeight {
  readonly kind: "blocks";
  /**
   * `matmul` for MatMulNBits, `gather` for GatherBlockQuantized, `columns` and `rows` for a
   * DequantizeLinear whose blocks run along axis 0 or 1.
   */
  readonly layout: "matmul" | "gather" | "columns" | "rows";
  /** Matrices of a batch, one after the other; so are their results. */
  readonly matrices: number;
  /** Of one matrix. */
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
  /** Moments of the matrix's inputs, which the rounding is fitted to. */
  readonly moments?: MomentsFile;
  readonly scaleType: FloatType;
  readonly outputs: TaskOutputs;
}

/**
 * Quantizes rows whose blocks have offsets, which are stored as further values of each row: the
 * shape counts them.
 */
export interface OffsetTask extends Omit<BlockTask, "kind" | "moments"> {
  readonly kind: "offset-blocks";
}

/** Converts to half precision. */
export interface HalfTask extends PlannedWeight {
  readonly kind: "half";
  readonly outputs: { readonly values: number };
}

/** One weight's transformation: all that a thread needs for it. */
export type WeightTask = AffineTask | BlockTask | OffsetTask | HalfTask;

/** Writes a tensor of a checkpoint that does not change, in float32 or in half precision. */
export interface CopyTask extends Omit<PlannedWeight, "weight"> {
  readonly kind: "copy" | "half";
  readonly outputs: { readonly values: number };
}

/** Rounds a matrix as its BlockTask does, and writes the values that are left: [input, output]. */
export interface RoundedTask extends Omit<BlockTask, "kind" | "outputs"> {
  readonly kind: "rounded";
  readonly moments: MomentsFile;
  readonly outputs: { readonly values: number };
}

export type ModelTask = WeightTask | CopyTask | RoundedTask;

export interface TaskResult {
  /** Undefined for a copy. */
  readonly weight?: number | undefined;
  readonly sums: ErrorSums;
  /** Why the weight cannot have this format after all; what was written is of no use then. */
  readonly rejection: string | undefined;
}

/** A task and where its results go. */
export interface PlacedTask {
  readonly task: ModelTask;
  /** Destinations by payload index. */
  readonly destinations: ReadonlyMap<number, readonly Destination[]>;
}

export interface RunTasksOptions {
  /** Where what tasks read is elsewhere. */
  readonly remote?: RemoteFiles | undefined;
  readonly signal: AbortSignal;
  /** Called with the source bytes done since the last call. */
  readonly onBytes: (bytes: number) => void;
  /** Called with the result of each task, by its position, as soon as its outputs are written. */
  readonly onResult?: ((index: number, result: TaskResult) => void) | undefined;
}
