import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { JobError } from "../../contract/errors.ts";
import { jobId as jobIdSchema } from "../../contract/id.ts";
import { maxDisruptions } from "../../contract/limits.ts";
import type { UnfinishedJob } from "../../records/jobs/attempt-records.ts";
import type { Records } from "../../records/open-records.ts";
import { errorMessage } from "../../log/error-message.ts";
import { removeScratch, scratchOwner } from "./scratch-folder.ts";
import { readStartMark, stopProcessGroup } from "./worker-process.ts";

interface ResumeOptions {
  readonly workDirectory: string;
  readonly log: (line: string) => void;
}

/**
 * Ends the attempts of an earlier run of the service, with their processes, and removes the scratch
 * folders here, but not what workers keep for the next attempt. Where others work on the same
 * records, one look does not say that a replica is gone: `followReplicas()` looks again.
 */
export async function resumeUnfinishedJobs(
  records: Records,
  { workDirectory, log }: ResumeOptions,
): Promise<void> {
  if (!records.replica.isShared) {
    const interrupted = await listInterrupted(records, new Set());
    await Promise.all(interrupted.map((job) => endInterrupted(records, job)));
  }
  const unfinished = await records.attempts.listUnfinished();
  const ids = new Set(unfinished.map(({ jobId }) => jobId));
  await removeAllScratch({ workDirectory, log }, ids);
}

/** Jobs with a process of a replica that does not run. */
export async function listInterrupted(
  { attempts }: Pick<Records, "attempts">,
  running: ReadonlySet<number>,
): Promise<UnfinishedJob[]> {
  const live = await attempts.listLiveProcesses();
  return live.filter(({ replica }) => replica === null || !running.has(replica));
}

export async function endInterrupted(
  { attempts }: Records,
  { jobId, attempt, process }: UnfinishedJob,
): Promise<void> {
  if (process !== null && (await readStartMark(process.pid)) === process.startMark) {
    await stopProcessGroup(process.pid, 0);
  }
  const disruption = "service_killed";
  const deaths = 1 + (await attempts.countDisrupted(jobId, disruption));
  const error = deaths > maxDisruptions ? serviceDeathsError(deaths) : null;
  await attempts.end(jobId, attempt, { error, lines: [], disruption });
}

function serviceDeathsError(deaths: number): JobError {
  const message = `The service died ${deaths} times while the job ran, which may be the cause`;
  return { code: "service_restarted", message };
}

/** A worker can leave what cannot be removed: the service starts all the same. */
async function removeAllScratch(
  { workDirectory, log }: ResumeOptions,
  unfinished: ReadonlySet<string>,
): Promise<void> {
  const names = await readdir(workDirectory);
  const scratch = names.filter((name) => jobIdSchema.safeParse(scratchOwner(name)).success);
  const removals = scratch.map((name) =>
    removeScratch(join(workDirectory, name), unfinished.has(name)).catch((error: unknown) =>
      log(`Cannot remove the scratch folder "${name}": ${errorMessage(error)}`),
    ),
  );
  await Promise.all(removals);
}
