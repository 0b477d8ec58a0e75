import type { JobError } from "../../contract/errors.ts";
import { workerExit } from "../../contract/jobs/worker.ts";

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
  /** The last lines of its stderr. */
  readonly lines: string[];
}

/** The error of a job whose worker ended without a result. */
export function workerExitError({ code, signal, lines }: WorkerProcessExit): JobError {
  if (lines.some((line) => outOfMemoryMarkers.some((marker) => line.includes(marker)))) {
    return { code: "out_of_memory", message: "The worker ran out of memory" };
  }
  if (signal !== null) return signalError(signal);
  if (code === workerExit.cancelled) {
    return { code: "worker_killed", message: "The worker was stopped from outside the service" };
  }
  const message = `The worker exited with code ${code} before it reported a result`;
  return { code: "worker_crashed", message };
}

function signalError(signal: string): JobError {
  if (crashSignals.has(signal)) {
    return { code: "worker_crashed", message: `The worker crashed with ${signal}` };
  }
  const hint = signal === "SIGKILL" ? ": the machine may have run out of memory" : "";
  return { code: "worker_killed", message: `The worker was killed by ${signal}${hint}` };
}
