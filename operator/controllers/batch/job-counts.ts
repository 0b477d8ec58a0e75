import { type StatusCounts, zeroCounts } from "../../../src/contract/jobs/batch.ts";
import {
  jobStateCodes,
  type JobStateCode,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

type UnmadeOrEndedCode = Exclude<JobStateCode, typeof jobStateCodes.created>;

const statusByState: Readonly<Record<UnmadeOrEndedCode, JobStatus>> = {
  [jobStateCodes.notCreated]: "Pending",
  [jobStateCodes.completed]: "Completed",
  [jobStateCodes.gateFailed]: "Completed",
  [jobStateCodes.failed]: "Failed",
  [jobStateCodes.cancelled]: "Cancelled",
};

/** How many jobs have each status. */
export function countJobsByStatus(
  { children }: ObservedBatchState,
  states: readonly JobStateCode[],
): StatusCounts {
  const counts = { ...zeroCounts };
  states.forEach((state, index) => {
    const status =
      state === jobStateCodes.created
        ? (children.get(index)?.status?.status ?? "Pending")
        : statusByState[state];
    counts[status]++;
  });
  return counts;
}

export function countEndedJobs({ Completed, Failed, Cancelled }: StatusCounts): number {
  return Completed + Failed + Cancelled;
}
