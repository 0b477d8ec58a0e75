import type { WorkerAuthentication } from "./worker-authentication.ts";

/**
 * Has jobs worked on: by processes on this machine, or by pods in a cluster. What becomes of them is told through
 * records, and so is a cancellation: executors listen to `records.changes`.
 */
export interface Executor {
  /** Where jobs and batches are held by custom resources; undefined where they are not. */
  readonly namespace?: string;
  /** How workers prove who they are. */
  readonly workers: WorkerAuthentication;
  /** Takes up jobs that are Pending, in the given order. */
  submit(jobIds: readonly string[]): void;
  /** Why the service cannot be relied on yet; undefined where it can. */
  readinessProblem(): string | undefined;
  /** Stops all work of this process. Jobs that were worked on are taken up again by the next start of the service. */
  close(): Promise<void>;
}
