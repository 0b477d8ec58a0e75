import type { EventSender } from "./event-sender.ts";
import type { JobError } from "../contract/errors.ts";
import type { Artifact } from "../contract/jobs/artifact.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import { splitLogLines } from "../contract/jobs/split-log-lines.ts";
import type { JobOutcome, WorkingStatus } from "../contract/jobs/status.ts";
import type { EndedStage, StageName } from "../contract/jobs/telemetry.ts";
import {
  type Assignment,
  type ModelOutline,
  type OptimizedShare,
  type TelemetryUpdate,
  telemetryUpdate,
  type WorkerStep,
} from "../contract/jobs/worker.ts";

interface ReporterOptions {
  readonly sender: Pick<EventSender, "add">;
  readonly now: () => Date;
  /** Shortest time between two reports of progress, milliseconds. */
  readonly progressIntervalMs: number;
  readonly print: (line: string) => void;
}

export interface Reporter {
  /** Prints text and reports it, line by line. */
  log(text: string, stream?: LogLine["stream"]): void;
  status(status: WorkingStatus): void;
  model(bytes: number, sha256: string): void;
  /** Reported from time to time, however often it is called. */
  progress(fraction: number, message: string): void;
  telemetry(update: TelemetryUpdate): void;
  /** Reports the end of a stage, with the seconds of all stages so far. */
  stage(ended: EndedStage, stageSeconds: TelemetryUpdate["stageSeconds"]): void;
  artifact(artifact: Artifact): void;
  outline(outline: ModelOutline): void;
  share(share: OptimizedShare): void;
  result(outcome: JobOutcome, error?: JobError): void;
}

/** Reports a worker's job: on its own output and to the service. */
export function createReporter({
  sender,
  now,
  progressIntervalMs,
  print,
}: ReporterOptions): Reporter {
  let lastProgressAt = -Infinity;
  // As the service takes it: names in models can be longer, and have hidden characters.
  const report = (update: TelemetryUpdate, stage?: EndedStage) =>
    sender.add({ type: "telemetry", telemetry: telemetryUpdate.parse(update), stage });
  return {
    log(text, stream = "stdout") {
      for (const line of splitLogLines(text)) {
        print(line);
        sender.add({ type: "log", stream, text: line });
      }
    },
    progress(fraction, text) {
      const at = now().getTime();
      // Also where the clock was set back.
      if (Math.abs(at - lastProgressAt) < progressIntervalMs) return;
      lastProgressAt = at;
      report({ progress: { fraction, message: text } });
    },
    status: (status) => sender.add({ type: "status", status }),
    model: (bytes, sha256) => sender.add({ type: "model", bytes, sha256 }),
    telemetry: (telemetry) => report(telemetry),
    stage: (stage, stageSeconds) => report({ stageSeconds }, stage),
    artifact: (artifact) => sender.add({ type: "artifact", artifact }),
    outline: (outline) => sender.add({ type: "outline", outline }),
    share: (share) => sender.add({ type: "share", share }),
    result: (outcome, error) => sender.add({ type: "result", outcome, error }),
  };
}

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
