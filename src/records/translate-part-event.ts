import type { Job } from "../contract/job.ts";
import type { Telemetry } from "../contract/telemetry.ts";
import type { WorkerEvent, WorkerStep } from "../contract/worker.ts";
import type { JobEvent } from "./apply-event.ts";
import { type AttemptRecord, currentAttempts, type JobPart } from "./find-attempts.ts";

/** Share of the job's progress that is done before and after each step. */
const stepProgressRanges: Record<WorkerStep, readonly [number, number]> = {
  shard: [0, 0.15],
  optimize: [0.15, 0.6],
  assemble: [0.6, 1],
};

type StageSeconds = NonNullable<Telemetry["stageSeconds"]>;

const stageNames = [
  "fetch",
  "shard",
  "optimize",
  "evaluate",
  "publish",
] as const satisfies (keyof StageSeconds)[];

interface JobWithAttempts {
  readonly job: Job;
  /** All attempts at the job, with their progress after the event. */
  readonly attempts: readonly AttemptRecord[];
}

/** What an event of a worker that does a part means for the whole job. */
export function translatePartEvent(
  event: WorkerEvent,
  part: JobPart,
  { job, attempts }: JobWithAttempts,
): JobEvent {
  const fraction = computeJobFraction(part.step, { job, attempts });
  switch (event.type) {
    case "result":
      if (event.outcome !== "Completed" || part.step === "assemble") return event;
      return {
        type: "telemetry",
        telemetry: { progress: { ...job.telemetry.progress, fraction } },
      };
    case "telemetry": {
      const { progress, stageSeconds } = event.telemetry;
      const telemetry = {
        ...event.telemetry,
        ...(progress && { progress: { ...progress, fraction } }),
        ...(stageSeconds && {
          stageSeconds: maxStageSeconds(job.telemetry.stageSeconds ?? {}, stageSeconds),
        }),
      };
      return { type: "telemetry", telemetry };
    }
    case "log":
    case "status":
    case "model":
    case "artifact":
    case "share":
      return event;
  }
}

/** What a job loses when a worker begins with a part that another had begun with. */
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
      return [{ type: "restart" }, { type: "telemetry", telemetry: { progress, stageSeconds } }];
    }
  }
}

function computeJobFraction(step: WorkerStep, { job, attempts }: JobWithAttempts): number {
  const [from, to] = stepProgressRanges[step];
  const pods = step === "optimize" ? job.recipe.parallelism : 1;
  const done = currentAttempts(attempts)
    .filter(({ part }) => part?.step === step)
    .reduce((sum, { progress }) => sum + progress, 0);
  return from + (to - from) * Math.min(1, done / pods);
}

/** Workers that go through a stage beside each other take as long as the slowest. */
function maxStageSeconds(known: StageSeconds, reported: StageSeconds): StageSeconds {
  const all = { ...known };
  for (const stage of stageNames) {
    const seconds = reported[stage];
    if (seconds !== undefined) all[stage] = Math.max(seconds, known[stage] ?? 0);
  }
  return all;
}
