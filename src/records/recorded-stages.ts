import { z } from "zod";
import { stageName } from "../contract/jobs/telemetry.ts";
import type { WorkerEvent } from "../contract/jobs/worker.ts";

/** Workers have ten at most, each run of a stage counted; more would be another's invention. */
const maxStages = 32;

const recordedStage = z.object({
  name: stageName,
  seconds: z.number(),
  /** The end, by the worker's clock. */
  endedAt: z.iso.datetime(),
});

/** A stage of a worker that has ended. */
export type RecordedStage = z.infer<typeof recordedStage>;

export function parseStages(text: string | null): RecordedStage[] {
  return text === null ? [] : z.array(recordedStage).parse(JSON.parse(text));
}

/** The stages after an event. */
export function addEndedStage(
  stages: readonly RecordedStage[],
  event: WorkerEvent,
): readonly RecordedStage[] {
  const stage = event.type === "telemetry" ? event.stage : undefined;
  if (stage === undefined || stages.length === maxStages) return stages;
  return [...stages, { ...stage, endedAt: event.at }];
}
