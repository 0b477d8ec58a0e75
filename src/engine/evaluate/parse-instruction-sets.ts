/** Flags of `/proc/cpuinfo` that decide which kernels the runtime chooses; x86, then Arm. */
const knownFlags = [
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
];

/** Instruction sets of the first processor in the text of `/proc/cpuinfo` that matter. */
export function parseInstructionSets(cpuinfo: string): string[] {
  const [, line = ""] = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo) ?? [];
  const flags = new Set(line.trim().split(/\s+/));
  return knownFlags.filter((flag) => flags.has(flag));
}
