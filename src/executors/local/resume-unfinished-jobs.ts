import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { JobError } from "../../contract/errors.ts";
import { jobId as jobIdSchema } from "../../contract/id.ts";
import { maxAttempts } from "../../contract/limits.ts";
import type { UnfinishedJob } from "../../records/list-unfinished-jobs.ts";
import type { Records } from "../../records/open-records.ts";
import { readStartMark, stopProcessGroup } from "./process-group.ts";

/**
 * Ends the attempts of an earlier run of the service, with their processes, and removes its scratch
 * folders.
 * @returns the jobs to work on, in the order of their creation
 */
export async function resumeUnfinishedJobs(
  records: Records,
  workDirectory: string,
): Promise<UnfinishedJob[]> {
  const unfinished = await records.attempts.listUnfinished();
  const interrupted = unfinished.filter((job) => job.live);
  await Promise.all(interrupted.map((job) => endInterrupted(records, job)));
  await removeScratch(workDirectory);
  return unfinished;
}

async function endInterrupted(
  { attempts }: Records,
  { jobId, attempt, process }: UnfinishedJob,
): Promise<void> {
  if (process !== null && (await readStartMark(process.pid)) === process.startMark) {
    await stopProcessGroup(process.pid, 0);
  }
  const error = attempt >= maxAttempts ? interruptionError : null;
  await attempts.end(jobId, attempt, { error, lines: [] });
}

const interruptionError: JobError = {
  code: "service_restarted",
  message: `The service restarted ${maxAttempts} times while the job ran`,
};

async function removeScratch(workDirectory: string): Promise<void> {
  const names = await readdir(workDirectory);
  const scratch = names.filter((name) => jobIdSchema.safeParse(name).success);
  await Promise.all(
    scratch.map((name) => rm(join(workDirectory, name), { recursive: true, force: true })),
  );
}
