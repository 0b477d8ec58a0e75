import type { CompressionJobStatus } from "../contract/custom-resources/compression-job.ts";
import type { StatusReason } from "../contract/jobs/status-reasons.ts";

/** When the operator set a job back to Pending since its pods were taken away; undefined where none waits. */
export function interruptionTime({
  status,
  statusReason,
  transitions,
}: CompressionJobStatus): string | undefined {
  const last = transitions?.at(-1);
  const isWaiting = status === "Pending" && statusReason !== ("starting" satisfies StatusReason);
  return isWaiting && last?.status === "Pending" ? last.at : undefined;
}

/** Whether the records behind these transitions have the interruption of a status, if it has one. */
export function hasSeenInterruption(
  status: CompressionJobStatus,
  transitions: CompressionJobStatus["transitions"] = [],
): boolean {
  const at = interruptionTime(status);
  return (
    at === undefined || transitions.some((known) => known.status === "Pending" && known.at === at)
  );
}
