/** Seconds of the files that take longest, as `npm test` prints them at its end. */
const seconds: Readonly<Record<string, number>> = {
  "test/e2e/installation.test.ts": 531,
  "test/executors/cluster/real-workers.test.ts": 289,
  "test/operator/compression-job/faults.test.ts": 120,
  "test/server/schemathesis.test.ts": 108,
  "test/operator/lifecycle.test.ts": 69,
  "test/dashboard/pages.test.ts": 66,
  "test/action/e2e/pull-request.test.ts": 64,
  "test/operator/compression-job/preemption.test.ts": 64,
  "test/action/check-runs.test.ts": 63,
  "test/dashboard/job.test.ts": 62,
  "test/charts/monitoring.test.ts": 62,
  "test/action/step.test.ts": 60,
  "test/dashboard/compare.test.ts": 60,
  "test/server/postgres.test.ts": 58,
  "test/worker/pods.test.ts": 57,
  "test/engine/shares.test.ts": 56,
};

/**
 * The longest files begin first, so that the run does not end with one of them alone.
 * @throws Error where a file of the table is not there
 */
export function startLongestFirst(files: readonly string[]): string[] {
  const missing = Object.keys(seconds).filter((file) => !files.includes(file));
  if (missing.length > 0) {
    throw new Error(`No test file, though ${import.meta.filename} names it: ${missing.join(", ")}`);
  }
  return files.toSorted((one, other) => (seconds[other] ?? 0) - (seconds[one] ?? 0));
}
