import type { Telemetry } from "../contract/jobs/telemetry.ts";

/** What is known of a result besides its size. */
export type Evaluation = Pick<Telemetry, "accuracy" | "latency" | "memory" | "device" | "warnings">;

/** Adds what was just measured. Warnings and figures of memory join those before. */
export function addMeasured(known: Evaluation, measured: Partial<Evaluation>): Evaluation {
  return {
    ...known,
    ...measured,
    memory: { ...known.memory, ...measured.memory },
    warnings: [...known.warnings, ...(measured.warnings ?? [])],
  };
}
