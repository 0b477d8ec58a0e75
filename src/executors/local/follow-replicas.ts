import { errorMessage } from "../../log/error-message.ts";
import type { CommittedChanges } from "../../records/database/changes.ts";
import type { Records } from "../../records/open-records.ts";
import { endInterrupted, listInterrupted } from "./resume-unfinished-jobs.ts";

/** Between two looks for jobs of replicas that are gone; they are taken over at the second one. */
const heartbeatMs = 5_000;

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
  const endAttemptsOfDeadReplicas = createDeadReplicaCheck(jobs, records);
  const missed = createMissedReader(() => readUnfinished());
  const inBackground = (read: () => Promise<void>) => {
    read().catch((error: unknown) => log(`Cannot read the jobs: ${errorMessage(error)}`));
  };

  async function applyRemote({ waiting, begun }: CommittedChanges): Promise<void> {
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

  async function heartbeat(): Promise<void> {
    await missed.readRest();
    await endAttemptsOfDeadReplicas();
  }

  const unsubscribe = [
    changes.onRemoteCommit((effects) => inBackground(() => applyRemote(effects))),
    changes.onGap(() => inBackground(() => missed.readFirst())),
  ];
  inBackground(heartbeat);
  const timer = setInterval(() => inBackground(heartbeat), heartbeatMs);
  return {
    readUnfinished,
    close() {
      clearInterval(timer);
      for (const end of unsubscribe) end();
    },
  };
}

/** Of many changes that are missed while a disk fails, the first is read at once. */
function createMissedReader(read: () => Promise<void>) {
  let isRead = true;
  const readRest = async () => {
    if (isRead) return;
    isRead = true;
    await read().catch((error: unknown) => {
      isRead = false;
      throw error;
    });
  };
  const readFirst = async () => {
    const isFirst = isRead;
    isRead = false;
    if (isFirst) await read();
  };
  return { readFirst, readRest };
}

/** Ends attempts whose replica was gone at two checks in a row: one that restarts its session is not. */
function createDeadReplicaCheck(
  jobs: Pick<LocalJobs, "add">,
  records: Records,
): () => Promise<void> {
  let gone = new Set<string>();
  return async () => {
    const before = gone;
    gone = new Set();
    if (!records.replica.isLeader() || !records.replica.isListComplete()) return;
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
