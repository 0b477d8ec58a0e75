import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { TensorSource } from "../../onnx/read-tensor.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";

/** Indices of the payloads that a task computes. */
interface TaskOutputs {
  readonly quantizedValues: number;
  readonly scales: number;
  readonly zeroPoints: number | undefined;
}

/** What a task reads. */
export interface SourceWeight {
  /** Position among the model's weights. */
  readonly weight: number;
  readonly source: TensorSource;
  readonly sourceType: "float32" | "float16";
  readonly elements: number;
  readonly sourceBytes: number;
}

interface PlannedWeight extends SourceWeight {
  /** Bytes of all that the task computes. */
  readonly resultBytes: number;
}

/** Quantizes with one scale for the tensor or for each channel. */
export interface AffineTask extends PlannedWeight {
  readonly kind: "linear";
  readonly channels: number;
  readonly inner: number;
  readonly format: AffineFormat;
  /** Half-precision scales. */
  readonly halfScales: boolean;
  /** Writes the quantized values of a matrix of that many columns transposed. */
  readonly transposeColumns: number | undefined;
  readonly outputs: TaskOutputs;
}

/** Quantizes with a scale for each block of a matrix. */
export interface BlockTask extends PlannedWeight {
  readonly kind: "blocks";
  /**
   * `matmul` for MatMulNBits, `gather` for GatherBlockQuantized, `columns` and `rows` for a
   * DequantizeLinear whose blocks run along axis 0 or 1.
   */
  readonly layout: "matmul" | "gather" | "columns" | "rows";
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
  readonly halfScales: boolean;
  readonly outputs: TaskOutputs;
}

/** Converts to half precision. */
export interface HalfTask extends PlannedWeight {
  readonly kind: "half";
  readonly outputs: { readonly values: number };
}

/** One weight's transformation: all that a thread needs for it. */
export type WeightTask = AffineTask | BlockTask | HalfTask;

export interface TaskResult {
  readonly weight: number;
  readonly sums: ErrorSums;
  /** Why the weight cannot have this format after all; what was written is of no use then. */
  readonly rejection: string | undefined;
}
