import { isTerminal, jobStatus } from "../contract/status.ts";
import type { Store } from "./store.ts";

const runningStatuses = jobStatus.options.filter(
  (status) => status !== "Pending" && !isTerminal(status),
);

interface UnfinishedJobs {
  readonly waiting: number;
  readonly running: number;
}

/** How much of the service projects use. */
export function usageRecords({ db }: Store) {
  return {
    /** Bytes of the project's uploads and of the artifacts of its jobs. */
    storedBytes: (project: string) => readStoredBytes(db, project),

    countJobs: (project: string) => countUnfinishedJobs(db, project),
  };
}

async function readStoredBytes(db: Store["db"], project: string): Promise<number> {
  const row = await db
    .selectFrom("project_usage")
    .select("stored_bytes")
    .where("project", "=", project)
    .executeTakeFirst();
  return Number(row?.stored_bytes ?? 0);
}

async function countUnfinishedJobs(db: Store["db"], project: string): Promise<UnfinishedJobs> {
  const rows = await db
    .selectFrom("jobs")
    .select(({ fn }) => ["status", fn.countAll<number>().as("jobs")])
    .where("project", "=", project)
    .where("status", "in", ["Pending", ...runningStatuses])
    .groupBy("status")
    .execute();
  const all = rows.reduce((sum, { jobs }) => sum + Number(jobs), 0);
  const waiting = Number(rows.find(({ status }) => status === "Pending")?.jobs ?? 0);
  return { waiting, running: all - waiting };
}
