import { workerExit } from "../contract/jobs/worker.ts";
import type { WorkerEnd } from "./job-thread-message.ts";
import { ServiceRefusal } from "./service-errors.ts";

/** How a worker ends that cannot go on, and what it says of it. */
export function crashEnd(
  error: unknown,
  isStopped: boolean,
): { readonly end: WorkerEnd; readonly details?: string } {
  if (isStopped || (error instanceof ServiceRefusal && error.code === "job_finished")) {
    return { end: { code: workerExit.cancelled, outcome: "Cancelled" } };
  }
  const [message, details] =
    error instanceof Error ? [error.message, error.stack] : [String(error), String(error)];
  const failure = { code: "worker_crashed", message } as const;
  return {
    end: { code: workerExit.crashed, outcome: "Failed", error: failure },
    details: `The worker cannot go on: ${details}`,
  };
}
