import { type Job, job as jobSchema } from "../contract/jobs/job.ts";

/** Reads the document of a job's row. */
export function parseJob(document: string): Job {
  return jobSchema.parse(JSON.parse(document));
}
