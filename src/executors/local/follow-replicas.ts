import { errorMessage } from "../../log/error-message.ts";
import type { Effects } from "../../records/effects.ts";
import type { Records } from "../../records/open-records.ts";
import { endInterrupted, listInterrupted } from "./resume-unfinished-jobs.ts";

/** Between two looks for jobs of replicas that are gone; they are taken over at the second one. */
const lookMs = 5_000;

/** The jobs that wait and run in this process. */
interface LocalJobs {
  add(project: string, jobIds: readonly string[]): void;
  /** Takes out a job that another replica works on. */
  remove(jobId: string): void;
  listRunning(): Iterable<string>;
  stop(jobId: string): void;
}

interface FollowOptions {
  readonly records: Records;
  readonly log: (line: string) => void;
}

/**
 * Keeps the jobs of this process in step with those of other replicas. The leader lets jobs begin
 * again whose replica is gone.
 */
export function followReplicas(
  jobs: LocalJobs,
  { records, log }: FollowOptions,
): { readUnfinished(): Promise<void>; close(): void } {
  const { attempts, changes } = records;
  const lookForGone = createLook(jobs, records);
  let hasMissed = false;
  const inBackground = (read: () => Promise<void>) => {
    read().catch((error: unknown) => log(`Cannot read the jobs: ${errorMessage(error)}`));
  };

  async function hear({ waiting, begun }: Effects): Promise<void> {
    for (const jobId of begun) jobs.remove(jobId);
    if (waiting.size === 0) return;
    for (const { project, jobId } of await attempts.listWaiting([...waiting])) {
      jobs.add(project, [jobId]);
    }
  }

  async function readUnfinished(): Promise<void> {
    for (const { project, jobId, live } of await attempts.listUnfinished()) {
      if (!live) jobs.add(project, [jobId]);
    }
    for (const jobId of jobs.listRunning()) {
      if ((await records.jobs.findStatus(jobId)) === "Cancelling") jobs.stop(jobId);
    }
  }

  async function readMissed(): Promise<void> {
    hasMissed = false;
    try {
      await readUnfinished();
    } catch (error) {
      hasMissed = true;
      throw error;
    }
  }

  async function look(): Promise<void> {
    if (hasMissed) await readMissed();
    await lookForGone();
  }

  const unsubscribe = [
    changes.onElsewhere((effects) => inBackground(() => hear(effects))),
    changes.onMissed(() => {
      // Of many that come while the disk fails the first is read now, the others by the next look.
      const isFirst = !hasMissed;
      hasMissed = true;
      if (isFirst) inBackground(readUnfinished);
    }),
  ];
  inBackground(look);
  const timer = setInterval(() => inBackground(look), lookMs);
  return {
    readUnfinished,
    close() {
      clearInterval(timer);
      for (const end of unsubscribe) end();
    },
  };
}

/** Ends attempts whose replica was gone at two looks: one that restarts its session is not. */
function createLook(jobs: Pick<LocalJobs, "add">, records: Records): () => Promise<void> {
  let gone = new Set<string>();
  return async () => {
    const before = gone;
    gone = new Set();
    if (!records.replica.isLeader()) return;
    const running = await records.replica.listRunning();
    for (const job of await listInterrupted(records, running)) {
      const { project, jobId, attempt } = job;
      const name = `${jobId} ${attempt}`;
      gone.add(name);
      if (!before.has(name)) continue;
      await endInterrupted(records, job);
      jobs.add(project, [jobId]);
    }
  };
}
