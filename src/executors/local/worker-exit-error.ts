import type { JobError } from "../../contract/errors.ts";
import { workerExit } from "../../contract/worker.ts";

const crashSignals: ReadonlySet<string> = new Set([
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGILL",
  "SIGSEGV",
  "SIGSYS",
  "SIGTRAP",
]);
const outOfMemoryMarkers = ["JavaScript heap out of memory", "std::bad_alloc"];

/** How a worker's process ended. */
export interface WorkerProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of what it printed to stderr. */
  readonly lines: string[];
}

/** What a job fails with whose worker ended without a result. */
export function workerExitError({ code, signal, lines }: WorkerProcessExit): JobError {
  if (lines.some((line) => outOfMemoryMarkers.some((mark) => line.includes(mark)))) {
    return { code: "out_of_memory", message: "The worker ran out of memory" };
  }
  if (signal === "SIGKILL") {
    const message = "The worker was killed by SIGKILL: the machine may have run out of memory";
    return { code: "worker_killed", message };
  }
  if (signal !== null && crashSignals.has(signal)) {
    return { code: "worker_crashed", message: `The worker crashed with ${signal}` };
  }
  if (signal !== null)
    return { code: "worker_killed", message: `The worker was killed by ${signal}` };
  if (code === workerExit.cancelled) {
    return { code: "worker_killed", message: "The worker was stopped from outside the service" };
  }
  return {
    code: "worker_crashed",
    message: `The worker exited with code ${code} before it told a result`,
  };
}
