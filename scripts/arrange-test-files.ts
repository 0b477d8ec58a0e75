/** They wait for pods, leases and timers most of the time, so that one runs beside those that compute. */
const waitingFiles = [
  "test/e2e/installation.test.ts",
  "test/executors/cluster/real-workers.test.ts",
  "test/operator/compression-job/faults.test.ts",
  "test/operator/lifecycle.test.ts",
];

/** Seconds of the others that take longest, as `npm test` prints them at its end. */
const seconds: Readonly<Record<string, number>> = {
  "test/server/schemathesis.test.ts": 110,
  "test/action/pull-request-life.test.ts": 56,
  "test/charts/monitoring.test.ts": 56,
  "test/action/check-runs.test.ts": 53,
  "test/worker/pods.test.ts": 52,
  "test/operator/compression-job/preemption.test.ts": 50,
  "test/executors/cluster/deleted-namespace.test.ts": 49,
  "test/executors/local/contained-sources.test.ts": 49,
  "test/charts/upgrade-page.test.ts": 47,
};

/**
 * The files that mostly wait, and the others, the longest first, so that the run does not end with
 * one long file that has the machine to itself.
 * @throws Error where a file of the tables is not there
 */
export function arrangeTestFiles(files: readonly string[]): {
  readonly waiting: readonly string[];
  readonly others: readonly string[];
} {
  const missing = [...waitingFiles, ...Object.keys(seconds)].filter(
    (file) => !files.includes(file),
  );
  if (missing.length > 0) {
    throw new Error(`No test file, though ${import.meta.filename} names it: ${missing.join(", ")}`);
  }
  const others = files.filter((file) => !waitingFiles.includes(file));
  return {
    waiting: waitingFiles,
    others: others.toSorted((one, other) => (seconds[other] ?? 0) - (seconds[one] ?? 0)),
  };
}
