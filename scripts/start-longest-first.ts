/** Seconds of the files that take longest, as `npm test` prints them at its end. */
const seconds: Readonly<Record<string, number>> = {
  "test/e2e/installation.test.ts": 508,
  "test/executors/cluster/real-workers.test.ts": 275,
  "test/server/postgres.test.ts": 232,
  "test/server/schemathesis.test.ts": 185,
  "test/operator/compression-job/faults.test.ts": 110,
  "test/worker/worker-stop.test.ts": 101,
  "test/worker/pods.test.ts": 85,
  "test/action/e2e/pull-request.test.ts": 80,
  "test/action/check-runs.test.ts": 79,
  "test/operator/lifecycle.test.ts": 77,
  "test/action/e2e/cancel.test.ts": 77,
  "test/action/step.test.ts": 73,
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
