import type { z } from "zod";
import { job } from "../../contract/jobs/job.ts";
import type { Store } from "../database/store.ts";

const producingJob = job.pick({
  id: true,
  name: true,
  status: true,
  createdAt: true,
  finishedAt: true,
  artifacts: true,
});

/** A job with the files that it produced. */
export type ProducingJob = z.infer<typeof producingJob>;

const jobsPerPage = 100;

/** The jobs of a project's batch that have artifacts, in its order. */
export async function listBatchArtifacts(
  { db }: Store,
  project: string,
  batchId: string,
): Promise<ProducingJob[]> {
  const jobs: ProducingJob[] = [];
  for (let last = ""; ;) {
    const rows = await db
      .selectFrom("jobs")
      .select(["id", "document"])
      .where("project", "=", project)
      .where("batch_id", "=", batchId)
      .where("id", ">", last)
      .orderBy("id")
      .limit(jobsPerPage)
      .execute();
    jobs.push(...rows.map(({ document }) => producingJob.parse(JSON.parse(document))));
    const end = rows.at(-1);
    if (end === undefined || rows.length < jobsPerPage) break;
    last = end.id;
  }
  return jobs.filter(({ artifacts }) => artifacts.length > 0);
}
