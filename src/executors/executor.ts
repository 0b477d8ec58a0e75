import type { CallerAuthentication, WorkerAuthentication } from "../auth/authenticate.ts";

/**
 * Runs jobs, as processes on this machine or as pods in a cluster. It reports through the records,
 * and reads cancellations from `records.changes`.
 */
export interface Executor {
  /** Where a project's custom resources are created; absent if there are none. */
  projectNamespace?(project: string): string;
  /** Jobs of a project that run at once where there are others; undefined where it is not known. */
  readonly projectRunningJobs?: number;
  /** Jobs that this process runs at once; undefined where the cluster decides. */
  readonly workerCount?: number;
  readonly workers: WorkerAuthentication;
  /** Authenticates programs of the cluster as callers; absent where they need access tokens. */
  readonly authenticateCaller?: CallerAuthentication | undefined;
  /** Starts jobs of a project that are Pending, in the given order, when there is a free worker. */
  submit(project: string, jobIds: readonly string[]): void;
  /** Place of a job among those that wait, from 1; undefined where none is known. */
  queuePosition(jobId: string): number | undefined;
  /** Whether a job's custom resource waits for its record; absent where jobs have no resource. */
  awaitsRecord?(jobId: string): boolean;
  /** Why the service is not ready; undefined where it is. */
  readinessProblem(): string | undefined;
  /** Why this process should be started again; absent where nothing of it can hang. */
  livenessProblem?(): string | undefined;
  /** Stops all work of this process. Jobs that were worked on go on at the next start. */
  close(): Promise<void>;
}
