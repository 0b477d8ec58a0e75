import type { LabelFilter } from "./label-filter.ts";
import type { Store } from "./store.ts";

/** Beyond this many jobs a label counts as frequent, and is not counted further. */
const maxCountedJobs = 1_000;

/** Orders labels by how many jobs have them: a search goes along the first one's index. */
export async function orderLabels(
  { db }: Store,
  project: string,
  labels: readonly LabelFilter[],
): Promise<readonly LabelFilter[]> {
  if (labels.length < 2) return labels;
  const counted = labels.map(async (label) => {
    const { key, value } = label;
    let found = db
      .selectFrom("job_labels")
      .select("job_id")
      .where("project", "=", project)
      .where("key", "=", key);
    if (value !== undefined) found = found.where("value", "=", value);
    const { jobs } = await db
      .selectFrom(found.limit(maxCountedJobs).as("found"))
      .select(({ fn }) => fn.countAll<number>().as("jobs"))
      .executeTakeFirstOrThrow();
    return { label, jobs: Number(jobs) };
  });
  const ascending = (await Promise.all(counted)).toSorted((one, other) => one.jobs - other.jobs);
  return ascending.map(({ label }) => label);
}
