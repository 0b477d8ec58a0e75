import type { Telemetry } from "../contract/telemetry.ts";
import type { Reporter } from "./reporter.ts";

type StageName = keyof NonNullable<Telemetry["stageSeconds"]>;

/** Share of the job's progress that is done before and after each stage. */
const spans = {
  fetch: [0, 0.15],
  shard: [0.15, 0.2],
  optimize: [0.2, 0.6],
  evaluate: [0.6, 0.95],
  publish: [0.95, 1],
} as const satisfies Record<StageName, readonly [number, number]>;

export interface Stage {
  /** `fraction` of the stage. */
  onProgress(this: void, fraction: number, message: string): void;
  log(this: void, line: string): void;
}

export type RunStage = <T>(name: StageName, work: (stage: Stage) => Promise<T>) => Promise<T>;

/** Runs the stages of a job, telling each one's progress as part of the whole, and its time. */
export function createStageClock(reporter: Reporter, signal: AbortSignal): RunStage {
  const seconds: Partial<Record<StageName, number>> = {};
  return async (name, work) => {
    signal.throwIfAborted();
    const [from, to] = spans[name];
    const startedAt = performance.now();
    const worked = await work({
      onProgress: (fraction, message) => reporter.progress(from + fraction * (to - from), message),
      log: (line) => reporter.log(`[${name}] ${line}`),
    });
    seconds[name] = Number(((performance.now() - startedAt) / 1000).toFixed(3));
    reporter.telemetry({ stageSeconds: { ...seconds } });
    return worked;
  };
}
