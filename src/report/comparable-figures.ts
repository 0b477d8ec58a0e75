import { latencyObstacle, sqnrObstacle } from "../contract/jobs/comparability.ts";
import type { Job } from "../contract/jobs/job.ts";

type MeasuredJob = Pick<Job, "telemetry" | "baseline">;

/** The baseline's accuracy, where it was measured in the same way. */
export function comparableAccuracy({ telemetry, baseline }: MeasuredJob) {
  const isComparable = baseline && sqnrObstacle(telemetry, baseline) === undefined;
  return isComparable ? baseline.accuracy : undefined;
}

/** The latency of the baseline's result, where it was measured on the same hardware. */
export function comparableLatency({ telemetry, baseline }: MeasuredJob) {
  const isComparable = baseline && latencyObstacle(telemetry, baseline) === undefined;
  return isComparable ? baseline.latency?.result : undefined;
}
