import type { Origin } from "../../contract/people/principal.ts";
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

/** The models that jobs name, by name and source, those of the newest jobs first. */
export async function findModelVersions(
  { db }: Store,
  { project, origin, limit }: ModelSearch,
): Promise<ModelVersion[]> {
  let jobs = db.selectFrom("jobs").where("project", "=", project);
  if (origin.repository !== undefined) {
    jobs = jobs.where("repository_id", "=", origin.repository);
  }
  if (origin.commit !== undefined) jobs = jobs.where("commit_sha", "=", origin.commit);
  const rows = await jobs
    .select(({ fn }) => [
      "model_name as name",
      "model_source as source",
      fn.countAll<number>().as("jobs"),
      fn.max("id").as("newestJobId"),
    ])
    .groupBy(["model_name", "model_source"])
    .orderBy("newestJobId", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, jobs: Number(row.jobs) }));
}
