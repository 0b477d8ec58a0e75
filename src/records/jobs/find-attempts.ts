import { z } from "zod";
import { stageName } from "../../contract/jobs/telemetry.ts";
import {
  type WorkerEvent,
  type WorkerStep,
  workerStep,
} from "../../contract/worker-protocol/messages.ts";
import type { WriteTransaction } from "../database/store.ts";

/** A worker's part of a job that several pods work on. */
export interface JobPart {
  readonly step: WorkerStep;
  /** Number of the share, from 0; 0 for steps of one pod. */
  readonly index: number;
}

/** One worker's work on a job. */
export interface AttemptRecord {
  readonly attempt: number;
  /** Null where the worker does all of the job. */
  readonly part: JobPart | null;
  /** Sequence number of the worker's next event. */
  readonly nextSeq: number;
  /** Share of the worker's own work that is done. */
  readonly progress: number;
  /** The worker's stages that have ended, in their order. */
  readonly stages: readonly RecordedStage[];
  readonly startedAt: string;
  readonly endedAt: string | null;
  /** Whether it ended by what is not the job's fault. */
  readonly wasDisrupted: boolean;
}

/** The attempts at a job, in the order in which they started. */
export async function findAttempts(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<AttemptRecord[]> {
  const rows = await trx
    .selectFrom("attempts")
    .select([
      "attempt",
      "step",
      "share",
      "next_seq",
      "progress",
      "stages",
      "started_at",
      "ended_at",
      "disruption",
    ])
    .where("job_id", "=", jobId)
    .orderBy("attempt")
    .execute();
  return rows.map((row) => ({
    attempt: row.attempt,
    part: row.step === null ? null : { step: workerStep.parse(row.step), index: row.share ?? 0 },
    nextSeq: row.next_seq,
    progress: row.progress,
    stages: parseStages(row.stages),
    startedAt: row.started_at,
    endedAt: row.ended_at,
    wasDisrupted: row.disruption !== null,
  }));
}

/**
 * Attempts that no later one has replaced: pods of one step run in parallel, one for each share.
 */
export function currentAttempts(attempts: readonly AttemptRecord[]): AttemptRecord[] {
  return attempts.filter(({ attempt, part }) =>
    attempts.every((other) => other.attempt <= attempt || areParallelParts(part, other.part)),
  );
}

function areParallelParts(part: JobPart | null, other: JobPart | null): boolean {
  return part !== null && part.step === other?.step && part.index !== other.index;
}

/** Workers have ten at most, each run of a stage counted; more would be another's invention. */
const maxStages = 32;

const recordedStage = z.object({
  name: stageName,
  seconds: z.number(),
  /** The end, by the worker's clock. */
  endedAt: z.iso.datetime(),
});

/** A stage of a worker that has ended. */
type RecordedStage = z.infer<typeof recordedStage>;

function parseStages(text: string | null): RecordedStage[] {
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
