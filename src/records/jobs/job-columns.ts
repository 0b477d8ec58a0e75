import { ServiceError } from "../../contract/errors.ts";
import { hasFailedGate } from "../../contract/jobs/gate.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/job-summary.ts";
import { limits } from "../../contract/limits.ts";

/**
 * The columns that depend only on the job and change with it.
 * @throws ServiceError payload_too_large for what is larger than all fields at their limits
 */
export function jobColumns(job: Job) {
  const document = JSON.stringify(job);
  const bytes = Buffer.byteLength(document);
  if (bytes > limits.jobDocumentBytes) {
    const message = `Job "${job.id}" would have ${bytes} bytes, of ${limits.jobDocumentBytes} at most`;
    throw new ServiceError("payload_too_large", message);
  }
  return {
    status: job.status,
    finished_at: job.finishedAt,
    gates_failed: hasFailedGate(job.gates) ? 1 : 0,
    document,
    summary: JSON.stringify(summarizeJob(job)),
  };
}
