/** How a weight is cut along its inner (K) dimension into blocks with a scale each. */
export interface BlockFormat {
  readonly bits: 4 | 8;
  /** A power of two from 16 to 256. */
  readonly blockSize: number;
  /** True: the zero point is the middle code and not stored. */
  readonly symmetric: boolean;
  /**
   * Whether the last code is left out where a block's values are nearer to a grid without it: a
   * fifth of the blocks of GGUF's Q4_K do not use it.
   */
  readonly isOnGrid?: boolean;
}

/**
 * A weight matrix of K inputs and N outputs as it is in memory: `kn` has K rows of N values (the B
 * of a MatMul), `nk` has N rows of K values (a Gemm with transB, an embedding table).
 */
export interface MatrixShape {
  readonly order: "kn" | "nk";
  readonly k: number;
  readonly n: number;
}

/**
 * Consecutive rows of a matrix. A tile of a `kn` matrix begins at a multiple of two blocks and has
 * whole blocks up to the matrix's end.
 */
export interface RowTile {
  readonly values: Float32Array;
  readonly firstRow: number;
}

/**
 * Quantized values, scales and packed zero points of a whole matrix; `zeroPoints` is empty if the
 * format is symmetric.
 */
export interface QuantizedBlocks {
  readonly quantizedValues: Uint8Array;
  readonly scales: Float32Array;
  readonly zeroPoints: Uint8Array;
}

export interface BlockMatrix {
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
}

export function countBlocks(k: number, { blockSize }: BlockFormat): number {
  return Math.ceil(k / blockSize);
}

/**
 * Buffers for a matrix in the layout of MatMulNBits: values [N, blocks, blockSize·bits/8], scales
 * [N, blocks], zero points [N, ⌈blocks·bits/8⌉].
 */
export function createMatMulNBitsBlocks(
  { k, n }: MatrixShape,
  format: BlockFormat,
): QuantizedBlocks {
  const blocks = countBlocks(k, format);
  return {
    quantizedValues: new Uint8Array((n * blocks * format.blockSize * format.bits) / 8),
    scales: new Float32Array(n * blocks),
    zeroPoints: new Uint8Array(format.symmetric ? 0 : n * Math.ceil((blocks * format.bits) / 8)),
  };
}

/**
 * Buffers for a matrix in the layout of GatherBlockQuantized: as for MatMulNBits, but the values
 * [N, ⌈K·bits/8⌉] of a row end with the row and not with its last block.
 */
export function createGatherBlocks({ k, n }: MatrixShape, format: BlockFormat): QuantizedBlocks {
  const matMulBlocks = createMatMulNBitsBlocks({ order: "nk", k, n }, format);
  return { ...matMulBlocks, quantizedValues: new Uint8Array(n * Math.ceil((k * format.bits) / 8)) };
}

/**
 * Buffers for a matrix in the layout of a blocked DequantizeLinear on axis 0: quantized values
 * [K, N], scales [blocks, N], zero points [blocks, N]. Values and zero points are packed in the
 * flattened order with the first in the low bits. Symmetric values are signed.
 */
export function createDequantizeLinearBlocks(
  { k, n }: MatrixShape,
  format: BlockFormat,
): QuantizedBlocks {
  const blocks = countBlocks(k, format);
  return {
    quantizedValues: new Uint8Array(Math.ceil((k * n * format.bits) / 8)),
    scales: new Float32Array(blocks * n),
    zeroPoints: new Uint8Array(format.symmetric ? 0 : Math.ceil((blocks * n * format.bits) / 8)),
  };
}
