import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { StatusReason } from "../../contract/jobs/status-reasons.ts";
import { canTransition } from "../../contract/jobs/status.ts";

/**
 * When the operator set a job that works, by its record, back to Pending, since its pods were taken
 * away. Undefined where the record has that already, and where new pods start.
 */
export function findInterruption(
  { status, statusReason, transitions }: CompressionJobStatus,
  job: Job,
): string | undefined {
  const last = transitions?.at(-1);
  if (status !== "Pending" || last?.status !== "Pending") return undefined;
  if (statusReason === ("starting" satisfies StatusReason)) return undefined;
  const isRecorded = job.transitions.some(
    (known) => known.status === "Pending" && known.at === last.at,
  );
  return isRecorded || !canTransition(job.kind, job.status, "Pending") ? undefined : last.at;
}
