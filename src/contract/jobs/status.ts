import { z } from "zod";
import { describeChoices } from "../text/describe-choices.ts";

/** What a job of each kind does. */
export const jobKindTable = {
  compress: "shards and optimizes each model",
  quantize: "direct hardware quantization, without sharding",
} as const;
export type JobKind = keyof typeof jobKindTable;
export const jobKind = z
  .enum(Object.keys(jobKindTable) as [JobKind, ...JobKind[]])
  .describe(describeChoices(jobKindTable));

export const jobStatus = z
  .enum(["Pending", "Sharding", "Optimizing", "Completed", "Failed", "Cancelling", "Cancelled"])
  .describe("Status of the job. Completed, Failed and Cancelled are final.");
export type JobStatus = z.infer<typeof jobStatus>;

/** Statuses of a job while its worker works; the worker reports them. */
export const workingStatus = jobStatus.extract(["Sharding", "Optimizing"]);
export type WorkingStatus = z.infer<typeof workingStatus>;

/** How a job's work can end; the worker reports it. */
export const jobOutcome = jobStatus.extract(["Completed", "Failed", "Cancelled"]);
export type JobOutcome = z.infer<typeof jobOutcome>;

/**
 * The one transition table: for each kind, the statuses that may follow each status. A job whose
 * pods the cluster took away is Pending again until one works on it.
 */
export const transitionTable: Record<JobKind, Record<JobStatus, readonly JobStatus[]>> = {
  compress: {
    Pending: ["Sharding", "Optimizing", "Failed", "Cancelling"],
    Sharding: ["Optimizing", "Pending", "Failed", "Cancelling"],
    Optimizing: ["Completed", "Pending", "Failed", "Cancelling"],
    Cancelling: ["Cancelled"],
    Completed: [],
    Failed: [],
    Cancelled: [],
  },
  quantize: {
    Pending: ["Optimizing", "Failed", "Cancelling"],
    Sharding: [],
    Optimizing: ["Completed", "Pending", "Failed", "Cancelling"],
    Cancelling: ["Cancelled"],
    Completed: [],
    Failed: [],
    Cancelled: [],
  },
};

export function canTransition(kind: JobKind, from: JobStatus, to: JobStatus): boolean {
  return transitionTable[kind][from].includes(to);
}

/** Whether one transition or several lead on from a status to another one, not back to Pending. */
export function leadsTo(kind: JobKind, from: JobStatus, to: JobStatus): boolean {
  return transitionTable[kind][from]
    .filter((next) => next !== "Pending")
    .some((next) => next === to || leadsTo(kind, next, to));
}

/** Statuses that a job or batch never leaves. */
const terminalStatuses = ["Completed", "Failed", "Cancelled"] as const;
type TerminalStatus = (typeof terminalStatuses)[number];

/** Statuses of a job that has not ended. */
export const liveStatuses = jobStatus.exclude(terminalStatuses).options;

export function isTerminal(status: JobStatus | BatchStatus): status is TerminalStatus {
  return terminalStatuses.some((terminal) => terminal === status);
}

export const transition = z.object({
  status: jobStatus,
  at: z.iso.datetime().describe("When the job entered the status."),
  reason: z.string().optional().describe("Stable code that says why."),
  message: z.string().optional().describe("The same for people."),
});

export const batchStatus = z
  .enum(["Pending", "Running", "Completed", "Failed", "Cancelling", "Cancelled"])
  .describe("Completed: every job Completed. Failed: all jobs are final and at least one Failed.");
export type BatchStatus = z.infer<typeof batchStatus>;
