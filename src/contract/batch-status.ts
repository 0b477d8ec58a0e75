import { type BatchStatus, isTerminal, type JobStatus, jobStatus } from "./status.ts";

export type StatusCounts = Readonly<Record<JobStatus, number>>;

/** A batch's status follows from its jobs' alone. */
export function deriveBatchStatus(counts: StatusCounts): BatchStatus {
  const present = jobStatus.options.filter((status) => counts[status] > 0);
  const unfinished = present.filter((status) => !isTerminal(status));
  if (unfinished.length > 0) {
    if (unfinished.every((status) => status === "Cancelling")) return "Cancelling";
    return present.every((status) => status === "Pending") ? "Pending" : "Running";
  }
  if (present.includes("Failed")) return "Failed";
  return present.includes("Cancelled") ? "Cancelled" : "Completed";
}

export const zeroCounts: StatusCounts = {
  Pending: 0,
  Sharding: 0,
  Optimizing: 0,
  Completed: 0,
  Failed: 0,
  Cancelling: 0,
  Cancelled: 0,
};
