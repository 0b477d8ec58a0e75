import { liveStatuses } from "../../contract/jobs/status.ts";
import type { ProcessIdentity } from "../database/replica.ts";
import type { Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";

/** A local job that had not ended when the service stopped. */
export interface UnfinishedJob {
  readonly project: string;
  readonly jobId: string;
  readonly attempt: number;
  /** Whether the end of the last attempt is not recorded. */
  readonly live: boolean;
  readonly process: ProcessIdentity | null;
  /** Number of the replica whose attempt it was; null for those from before there were replicas. */
  readonly replica: number | null;
}

/** A job that waits for a worker. */
interface WaitingJob {
  readonly project: string;
  readonly jobId: string;
}

/** Jobs without a custom resource that have not ended, in the order of their creation. */
export async function listUnfinishedLocalJobs(store: Store): Promise<UnfinishedJob[]> {
  const rows = await selectLocalJobs(store).execute();
  return rows.map(parseUnfinishedRow);
}

/** Those of the jobs without a custom resource that wait for a worker. */
export async function listWaitingJobs(
  store: Store,
  jobIds: readonly string[],
): Promise<WaitingJob[]> {
  const rows = await selectLocalJobs(store).where("jobs.id", "in", jobIds).execute();
  return rows.map(parseUnfinishedRow).filter(({ live }) => !live);
}

/** Jobs without a custom resource whose last attempt has not ended. */
export async function listLiveProcesses(store: Store): Promise<UnfinishedJob[]> {
  const rows = await store.db
    .selectFrom("attempts")
    .innerJoin("jobs", (join) =>
      join.onRef("jobs.id", "=", "attempts.job_id").onRef("jobs.attempt", "=", "attempts.attempt"),
    )
    .where("attempts.ended_at", "is", null)
    .where("jobs.status", "in", liveStatuses)
    .where("jobs.resource", "is", null)
    .orderBy("jobs.id")
    .select(unfinishedColumns)
    .execute();
  return rows.map(parseUnfinishedRow);
}

const unfinishedColumns = [
  "jobs.id",
  "jobs.project",
  "jobs.attempt",
  "started_at",
  "ended_at",
  "pid",
  "start_mark",
  "replica",
] as const;

function selectLocalJobs(store: Store) {
  return selectUnfinishedJobs(store, "is")
    .leftJoin("attempts", (join) =>
      join.onRef("attempts.job_id", "=", "jobs.id").onRef("attempts.attempt", "=", "jobs.attempt"),
    )
    .select(unfinishedColumns);
}

type UnfinishedRow = Pick<Schema["jobs"], "id" | "project" | "attempt"> &
  Pick<Schema["attempts"], "ended_at" | "pid" | "start_mark" | "replica"> & {
    readonly started_at: string | null;
  };

function parseUnfinishedRow(row: UnfinishedRow): UnfinishedJob {
  const { id: jobId, project, attempt, pid, start_mark: startMark, replica } = row;
  const live = row.started_at !== null && row.ended_at === null;
  const process = pid === null || startMark === null ? null : { pid, startMark };
  return { jobId, project, attempt, live, process, replica };
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
