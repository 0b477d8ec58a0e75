import type { Job } from "../contract/job.ts";
import type { Telemetry } from "../contract/telemetry.ts";
import type { WorkerEvent, WorkerStep } from "../contract/worker.ts";
import type { JobEvent } from "./apply-event.ts";
import { type AttemptRecord, currentAttempts, type Part } from "./attempt-record.ts";

/** Share of the job's progress that is done before and after each step. */
const spans: Record<WorkerStep, readonly [number, number]> = {
  shard: [0, 0.15],
  optimize: [0.15, 0.6],
  assemble: [0.6, 1],
};

type StageSeconds = NonNullable<Telemetry["stageSeconds"]>;

const stages = ["fetch", "shard", "optimize", "evaluate", "publish"] as const satisfies (keyof StageSeconds)[];

interface Whole {
  readonly job: Job;
  /** All attempts at the job, with their progress after the event. */
  readonly attempts: readonly AttemptRecord[];
}

/** What an event of a worker that does a part means for the whole job. */
export function partEvent(event: WorkerEvent, part: Part, { job, attempts }: Whole): JobEvent {
  const fraction = progressOf(part.step, { job, attempts });
  switch (event.type) {
    case "result":
      if (event.outcome !== "Completed" || part.step === "assemble") return event;
      return { type: "telemetry", telemetry: { progress: { ...job.telemetry.progress, fraction } } };
    case "telemetry": {
      const { progress, stageSeconds } = event.telemetry;
      const telemetry = {
        ...event.telemetry,
        ...(progress && { progress: { ...progress, fraction } }),
        ...(stageSeconds && { stageSeconds: longest(job.telemetry.stageSeconds ?? {}, stageSeconds) }),
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
export function beginAnew(job: Job, part: Part | null): JobEvent[] {
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
      const progress = { fraction: spans.assemble[0] };
      return [{ type: "restart" }, { type: "telemetry", telemetry: { progress, stageSeconds } }];
    }
  }
}

function progressOf(step: WorkerStep, { job, attempts }: Whole): number {
  const [from, to] = spans[step];
  const pods = step === "optimize" ? job.recipe.parallelism : 1;
  const done = currentAttempts(attempts)
    .filter(({ part }) => part?.step === step)
    .reduce((sum, { progress }) => sum + progress, 0);
  return from + (to - from) * Math.min(1, done / pods);
}

/** Workers that go through a stage beside each other take as long as the slowest. */
function longest(known: StageSeconds, told: StageSeconds): StageSeconds {
  const all = { ...known };
  for (const stage of stages) {
    const seconds = told[stage];
    if (seconds !== undefined) all[stage] = Math.max(seconds, known[stage] ?? 0);
  }
  return all;
}
