import type { WorkerAuthentication } from "./worker-authentication.ts";

/**
 * Runs jobs, as processes on this machine or as pods in a cluster. It reports through the records,
 * and reads cancellations from `records.changes`.
 */
export interface Executor {
  /** Of the custom resources that jobs and batches are; undefined where they are not. */
  readonly namespace?: string;
  /** Authenticates workers. */
  readonly workers: WorkerAuthentication;
  /** Starts jobs that are Pending, in the given order, when there is a free worker. */
  submit(jobIds: readonly string[]): void;
  /** Why the service is not ready; undefined where it is. */
  readinessProblem(): string | undefined;
  /** Stops all work of this process. Jobs that were worked on go on at the next start. */
  close(): Promise<void>;
}
