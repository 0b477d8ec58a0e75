import type { SelectQueryBuilder } from "kysely";
import { summarizeJob } from "../../contract/jobs/job-summary.ts";
import type { JobQuery } from "../../contract/jobs/page.ts";
import { parseJob } from "./find-record.ts";
import type { Schema } from "../database/schema.ts";

/** Rows of jobs, of which nothing is selected yet. */
type SelectedJobs = SelectQueryBuilder<Schema, "jobs", object>;

export interface JobText {
  readonly id: string;
  /** The job as the contract defines it, or its summary, as JSON. */
  readonly text: string;
}

/** Jobs as lists show them, in the order of `jobs`. */
export function readJobTexts(jobs: SelectedJobs, view: JobQuery["view"]): Promise<JobText[]> {
  if (view === "summary") return readSummaries(jobs);
  return jobs.select(["jobs.id", "jobs.document as text"]).execute();
}

async function readSummaries(jobs: SelectedJobs): Promise<JobText[]> {
  const rows = await jobs
    .select((eb) => [
      "jobs.id",
      "jobs.summary",
      eb.case().when("jobs.summary", "is", null).then(eb.ref("jobs.document")).end().as("document"),
    ])
    .execute();
  return rows.map(({ id, summary, document }) => {
    return { id, text: summary ?? JSON.stringify(summarizeJob(parseJob(document ?? ""))) };
  });
}
