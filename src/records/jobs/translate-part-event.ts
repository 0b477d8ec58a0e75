import type { Job } from "../../contract/jobs/job.ts";
import { stageName, type Telemetry } from "../../contract/jobs/telemetry.ts";
import type {
  TelemetryUpdate,
  WorkerEvent,
  WorkerStep,
} from "../../contract/worker-protocol/messages.ts";
import type { JobEvent } from "./apply-event.ts";
import { type AttemptRecord, currentAttempts, type JobPart } from "./find-attempts.ts";

/** The job's progress before and after each step. */
const stepProgressRanges: Record<WorkerStep, readonly [number, number]> = {
  shard: [0, 0.15],
  optimize: [0.15, 0.6],
  assemble: [0.6, 1],
};

type StageSeconds = NonNullable<Telemetry["stageSeconds"]>;

interface JobWithAttempts {
  readonly job: Job;
  /** All attempts at the job, with their progress after the event. */
  readonly attempts: readonly AttemptRecord[];
}

/** The event for the whole job that follows from one of a worker that does a part. */
export function translatePartEvent(
  event: WorkerEvent,
  part: JobPart,
  { job, attempts }: JobWithAttempts,
): JobEvent {
  const fraction = computeJobFraction(part.step, { job, attempts });
  switch (event.type) {
    case "result": {
      if (event.outcome !== "Completed" || part.step === "assemble") return event;
      const progress = { ...job.telemetry.progress, fraction };
      return { type: "telemetry", telemetry: { progress } };
    }
    case "telemetry": {
      const telemetry = mergePartTelemetry(event.telemetry, job.telemetry, fraction);
      return { type: "telemetry", telemetry };
    }
    case "log":
    case "status":
    case "model":
    case "artifact":
    case "outline":
    case "share":
      return event;
  }
}

/** Events that undo the work on a part when another worker starts it again. */
export function restartEvents(job: Job, part: JobPart | null): JobEvent[] {
  switch (part?.step) {
    case undefined:
    case "shard":
      return [{ type: "restart" }];
    case "optimize":
      return [];
    case "assemble": {
      const stageSeconds = { ...job.telemetry.stageSeconds };
      delete stageSeconds.evaluate;
      delete stageSeconds.publish;
      const progress = { fraction: stepProgressRanges.assemble[0] };
      const { forecast } = job.telemetry;
      const kept = { progress, stageSeconds, ...(forecast && { forecast }) };
      return [{ type: "restart" }, { type: "telemetry", telemetry: kept }];
    }
  }
}

function mergePartTelemetry(
  update: TelemetryUpdate,
  known: Telemetry,
  fraction: number,
): TelemetryUpdate {
  const merged = { ...update };
  const { progress, stageSeconds } = update;
  if (progress) merged.progress = { ...progress, fraction };
  if (stageSeconds) merged.stageSeconds = maxStageSeconds(known.stageSeconds ?? {}, stageSeconds);
  return merged;
}

function computeJobFraction(step: WorkerStep, { job, attempts }: JobWithAttempts): number {
  const [from, to] = stepProgressRanges[step];
  const pods = step === "optimize" ? job.recipe.parallelism : 1;
  const done = currentAttempts(attempts)
    .filter(({ part }) => part?.step === step)
    .reduce((sum, { progress }) => sum + progress, 0);
  return from + (to - from) * Math.min(1, done / pods);
}

/** Workers that run a stage in parallel take as long as the slowest. */
function maxStageSeconds(known: StageSeconds, reported: StageSeconds): StageSeconds {
  const all = { ...known };
  for (const stage of stageName.options) {
    const seconds = reported[stage];
    if (seconds !== undefined) all[stage] = Math.max(seconds, known[stage] ?? 0);
  }
  return all;
}
