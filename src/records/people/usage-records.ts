import { isTerminal, jobStatus } from "../../contract/jobs/status.ts";
import type { Store } from "../database/store.ts";

const runningStatuses = jobStatus.options.filter(
  (status) => status !== "Pending" && !isTerminal(status),
);

/** How much of the service projects use. */
export function usageRecords({ db }: Store) {
  return {
    /** Bytes of the project's uploads and of the artifacts of its jobs. */
    async storedBytes(project: string): Promise<number> {
      const row = await db
        .selectFrom("project_usage")
        .select("stored_bytes")
        .where("project", "=", project)
        .executeTakeFirst();
      return Number(row?.stored_bytes ?? 0);
    },

    async countJobs(project: string): Promise<{ waiting: number; running: number }> {
      const { running } = await db
        .selectFrom("jobs")
        .select(({ fn }) => fn.countAll<number>().as("running"))
        .where("project", "=", project)
        .where("status", "in", runningStatuses)
        .executeTakeFirstOrThrow();
      const starting = await countStartingJobs(db, project);
      const waiting = Math.max(0, (await readWaitingJobs(db, project)) - starting);
      return { waiting, running: Number(running) + starting };
    },
  };
}

/** Pending jobs that a worker was started for. */
async function countStartingJobs(db: Store["db"], project: string): Promise<number> {
  const { jobs } = await db
    .selectFrom("attempts")
    .innerJoin("jobs", "jobs.id", "attempts.job_id")
    .select(({ fn }) => fn.count<number>("jobs.id").distinct().as("jobs"))
    .where("attempts.ended_at", "is", null)
    .where("jobs.project", "=", project)
    .where("jobs.status", "=", "Pending")
    .executeTakeFirstOrThrow();
  return Number(jobs);
}

export async function readWaitingJobs(db: Store["db"], project: string): Promise<number> {
  const row = await db
    .selectFrom("waiting_jobs")
    .select("jobs")
    .where("project", "=", project)
    .executeTakeFirst();
  return Number(row?.jobs ?? 0);
}
