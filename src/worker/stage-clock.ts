import type { StageName } from "../contract/jobs/telemetry.ts";
import type { Assignment, WorkerStep } from "../contract/jobs/worker.ts";
import type { Reporter } from "./reporter.ts";

type ProgressRanges = Partial<Record<StageName, readonly [number, number]>>;

/** A worker's progress before and after each of its stages. */
const stageProgressRanges: Record<"all" | WorkerStep, ProgressRanges> = {
  all: {
    fetch: [0, 0.15],
    shard: [0.15, 0.2],
    optimize: [0.2, 0.6],
    publish: [0.6, 0.65],
    evaluate: [0.65, 1],
  },
  shard: { fetch: [0, 0.7], shard: [0.7, 0.8], publish: [0.8, 1] },
  optimize: { fetch: [0, 0.2], optimize: [0.2, 0.9], publish: [0.9, 1] },
  assemble: { fetch: [0, 0.1], optimize: [0.1, 0.3], publish: [0.3, 0.4], evaluate: [0.4, 1] },
};

export interface Stage {
  /** `fraction` of the stage. */
  onProgress(this: void, fraction: number, message: string): void;
  log(this: void, line: string): void;
}

export type RunStage = <T>(name: StageName, work: (stage: Stage) => Promise<T>) => Promise<T>;

interface ClockOptions {
  readonly assignment: Pick<Assignment, "part" | "recipe">;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/**
 * Runs the stages of a worker; reports the time of each, also of one that fails, and its progress
 * as part of the worker's. A stage can run several times, also within another one, whose time it is
 * not.
 */
export function createStageClock({
  assignment: { part, recipe },
  reporter,
  signal,
}: ClockOptions): RunStage {
  const seconds: Partial<Record<StageName, number>> = {};
  let counted = 0;
  const share = part?.step === "optimize" ? ` ${part.index + 1}/${recipe.parallelism}` : "";
  return async (name, work) => {
    signal.throwIfAborted();
    const [from, to] = stageProgressRanges[part?.step ?? "all"][name] ?? [0, 1];
    const startedAt = performance.now();
    const countedBefore = counted;
    try {
      return await work({
        onProgress: (fraction, message) =>
          reporter.progress(from + fraction * (to - from), message),
        log: (line) => reporter.log(`[${name}${share}] ${line}`),
      });
    } finally {
      const elapsed = (performance.now() - startedAt) / 1000;
      const all = (seconds[name] ?? 0) + elapsed - (counted - countedBefore);
      counted = countedBefore + elapsed;
      seconds[name] = Number(all.toFixed(3));
      reporter.stage({ name, seconds: Number(elapsed.toFixed(3)) }, { ...seconds });
    }
  };
}
