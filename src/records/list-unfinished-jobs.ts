import { liveStatuses } from "../contract/status.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import type { Store } from "./store.ts";

/** A local job that had not ended when the service stopped. */
export interface UnfinishedJob {
  readonly project: string;
  readonly jobId: string;
  readonly attempt: number;
  /** Whether the end of the last attempt is not recorded. */
  readonly live: boolean;
  readonly process: ProcessIdentity | null;
}

/** Jobs without a custom resource that have not ended, in the order of their creation. */
export async function listUnfinishedLocalJobs(store: Store): Promise<UnfinishedJob[]> {
  const rows = await selectUnfinishedJobs(store, "is")
    .leftJoin("attempts", (join) =>
      join.onRef("attempts.job_id", "=", "jobs.id").onRef("attempts.attempt", "=", "jobs.attempt"),
    )
    .select([
      "jobs.id",
      "jobs.project",
      "jobs.attempt",
      "started_at",
      "ended_at",
      "pid",
      "start_mark",
    ])
    .execute();
  return rows.map(({ id: jobId, project, attempt, pid, start_mark: startMark, ...times }) => {
    const live = times.started_at !== null && times.ended_at === null;
    const process = pid === null || startMark === null ? null : { pid, startMark };
    return { jobId, project, attempt, live, process };
  });
}

/** Ids of the jobs with a custom resource that have not ended, in the order of their creation. */
export async function listUnfinishedClusterJobs(store: Store): Promise<string[]> {
  const rows = await selectUnfinishedJobs(store, "is not").select("jobs.id").execute();
  return rows.map((row) => row.id);
}

function selectUnfinishedJobs({ db }: Store, resourceIsNull: "is" | "is not") {
  return db
    .selectFrom("jobs")
    .where("jobs.status", "in", liveStatuses)
    .where("jobs.resource", resourceIsNull, null)
    .orderBy("jobs.id");
}
