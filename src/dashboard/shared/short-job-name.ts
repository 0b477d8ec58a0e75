import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { jobTitle } from "../../report/render-job.ts";

/** A job's name beside its target: the model's where nobody gave the job another one. */
export function shortJobName({
  name,
  model,
  target,
}: Pick<JobSummary, "name" | "model" | "target">) {
  return name === jobTitle({ model, target }) ? model : name;
}
