/**
 * Instruction sets that decide which kernels ONNX Runtime chooses, by their flags in
 * `/proc/cpuinfo`; x86, then Arm.
 */
export const instructionSets = [
  "sse4_2",
  "avx",
  "avx2",
  "fma",
  "f16c",
  "avx512f",
  "avx512_vnni",
  "avx_vnni",
  "avx512_bf16",
  "amx_int8",
  "amx_bf16",
  "neon",
  "asimd",
  "asimddp",
  "i8mm",
  "sve",
] as const;
