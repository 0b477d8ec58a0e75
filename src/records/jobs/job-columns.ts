import { hasFailedGate } from "../../contract/jobs/gate.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/job-summary.ts";

/** The columns that follow from the job alone and change with it. */
export function jobColumns(job: Job) {
  return {
    status: job.status,
    finished_at: job.finishedAt,
    gates_failed: hasFailedGate(job.gates) ? 1 : 0,
    document: JSON.stringify(job),
    summary: JSON.stringify(summarizeJob(job)),
  };
}
