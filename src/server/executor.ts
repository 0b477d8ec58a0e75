/**
 * Has jobs worked on: by processes on this machine, or by pods in a cluster. What becomes of them is told through
 * records, and so is a cancellation: executors listen to `records.changes`.
 */
export interface Executor {
  /** Takes up jobs that are Pending, in the given order. */
  submit(jobIds: readonly string[]): void;
  /** Stops all work. Jobs that were worked on are taken up again by the next start of the service. */
  close(): Promise<void>;
}
