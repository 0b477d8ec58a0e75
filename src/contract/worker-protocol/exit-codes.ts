/**
 * Exit codes of a worker; a pod's failure policy reads them. `terminated` is 128 + SIGTERM, `killed`
 * 128 + SIGKILL.
 */
export const workerExit = {
  completed: 0,
  failed: 10,
  cancelled: 11,
  crashed: 70,
  killed: 137,
  terminated: 143,
} as const;

/** What each exit code means. */
export const workerExitMeanings: Readonly<Record<keyof typeof workerExit, string>> = {
  completed: "The worker has done its work and reported the result.",
  failed: "The job failed for the reason in the termination message; it is not tried again.",
  cancelled: "The worker was stopped by a signal or by the job's cancellation.",
  crashed: "The worker crashed; another attempt is started.",
  killed:
    "The worker was killed; another attempt is started, except where it was for lack of memory.",
  terminated: "The worker was stopped by a signal before it had begun.",
};
