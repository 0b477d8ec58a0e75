import type { TerminationMessage } from "../contract/jobs/worker.ts";

/** How a worker ends: its exit code, and what its pod leaves to be read. */
export interface WorkerEnd extends Omit<TerminationMessage, "lastSeq"> {
  readonly code: number;
}

/** Message of a job's thread to the main thread. */
export type JobThreadMessage =
  | { readonly kind: "line" | "error"; readonly text: string }
  /** A pod's event as JSON, to be printed, in the order of their numbers. */
  | { readonly kind: "event"; readonly text: string }
  /** The service says that the job has to stop. */
  | { readonly kind: "cancelled"; readonly text: string }
  /** A pod's job stops, and has so long to report that. */
  | { readonly kind: "stopping"; readonly limitMs: number }
  | { readonly kind: "end"; readonly end: WorkerEnd };
