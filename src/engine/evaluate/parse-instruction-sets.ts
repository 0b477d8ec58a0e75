import { instructionSets } from "../../contract/jobs/latency.ts";

/** Instruction sets of the first processor in the text of `/proc/cpuinfo` that matter. */
export function parseInstructionSets(cpuinfo: string): string[] {
  const [, line = ""] = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo) ?? [];
  const flags = new Set(line.trim().split(/\s+/));
  return instructionSets.filter((flag) => flags.has(flag));
}
