/** Resident memory of a process with the runtime and without a model, bytes, generously. */
const sessionBaseBytes = 128 * 1024 ** 2;

/**
 * Peak memory of a session for each byte of weights in float32: most kernels keep a copy in a
 * layout of their own, and while the model loads, a weight can be there in three forms. Measured on
 * 320 MiB of MatMul weights: float32 1.4, with external data 1.3, int8 1.3, int4 1.2, float16 1.8.
 */
const bytesPerWeightByte = 2;

/** Share of the memory at hand that sessions are planned to take; the rest is for activations. */
const plannedShare = 0.75;

/** Bytes of memory that a session with so many bytes of weights in float32 needs. */
export function estimateSessionBytes(weightBytes: number): number {
  return sessionBaseBytes + weightBytes * bytesPerWeightByte;
}

/** Bytes that all sessions together may be planned to take. */
export function limitSessionBytes(availableBytes: number): number {
  return Math.floor(availableBytes * plannedShare);
}

/** Most bytes of weights in float32 that a session of so many bytes can have. */
export function limitWeightBytes(sessionBytes: number): number {
  return Math.floor((sessionBytes - sessionBaseBytes) / bytesPerWeightByte);
}
