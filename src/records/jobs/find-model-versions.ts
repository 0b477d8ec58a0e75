import type { Origin } from "../../contract/people/principal.ts";
import { limits } from "../../contract/limits.ts";
import type { Store } from "../database/store.ts";

/** Whose jobs count. */
interface ModelSearch {
  readonly project: string;
  readonly origin: Partial<Origin>;
  readonly limit: number;
}

export interface ModelVersion {
  readonly name: string;
  readonly source: string;
  readonly jobs: number;
  readonly newestJobId: string;
}

/** The models that the newest jobs name, by name and source, those of the newest ones first. */
export async function findModelVersions(
  { db }: Store,
  { project, origin, limit }: ModelSearch,
): Promise<ModelVersion[]> {
  let jobs = db.selectFrom("jobs").where("project", "=", project);
  if (origin.repository !== undefined) {
    jobs = jobs.where("repository_id", "=", origin.repository);
  }
  if (origin.commit !== undefined) jobs = jobs.where("commit_sha", "=", origin.commit);
  const newest = jobs
    .select(["id", "model_name as name", "model_source as source"])
    .orderBy("id", "desc")
    // SQLite answers at once: others wait for every job that is looked at.
    .limit(limits.countedJobs);
  const rows = await db
    .selectFrom(newest.as("newest"))
    .select(({ fn }) => ["name", "source", fn.countAll<number>().as("jobs")])
    .select(({ fn }) => fn.max("id").as("newestJobId"))
    .groupBy(["name", "source"])
    .orderBy("newestJobId", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, jobs: Number(row.jobs) }));
}
