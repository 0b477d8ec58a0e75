import { dirname } from "node:path";

/**
 * They wait for pods, leases and timers most of the time, so that one runs beside those that
 * compute: as many as take about as long as all others.
 */
const waitingFiles = [
  "test/e2e/installation.test.ts",
  "test/executors/cluster/real-workers.test.ts",
  "test/operator/compression-job/faults.test.ts",
  "test/executors/cluster/deleted-namespace.test.ts",
  "test/operator/lifecycle.test.ts",
  "test/operator/compression-job/preemption.test.ts",
];

/**
 * Folders whose files share a process, by its name: to load what they test takes longer than most of
 * their tests. They have no hooks besides those of a test, and leave nothing that another would see.
 */
const sharedFolders: Readonly<Record<string, readonly string[]>> = {
  storage: [
    "test/model-files",
    "test/storage",
    "test/storage/s3",
    "test/storage/sources",
    "test/tracing",
    "test/webhooks",
  ],
  server: ["test/server"],
  records: ["test/records"],
  parts: [
    "test/auth",
    "test/client",
    "test/contract",
    "test/github-app",
    "test/limits",
    "test/operator/compression-job/decide",
    "test/report",
  ],
  engine: [
    "test/engine/checkpoints",
    "test/engine/evaluate",
    "test/engine/language",
    "test/engine/onnx",
    "test/engine/quantize/kernels",
    "test/engine/quantize/tasks",
    "test/engine/search",
  ],
};

/** Files of these folders that start servers, have hooks or measure their process. */
const ownProcess = [
  "test/engine/latency/compare-latency.test.ts",
  "test/engine/samples/generate-sample.test.ts",
  "test/engine/samples/hostile-samples.test.ts",
  "test/engine/runtime/model-session.test.ts",
  "test/engine/evaluate/not-exercised.test.ts",
  "test/engine/samples/open-samples.test.ts",
  "test/engine/onnx/open-model.test.ts",
  "test/engine/onnx/write-model.test.ts",
  "test/github-app/webhook.test.ts",
  "test/records/postgres-schema.test.ts",
  "test/records/postgres.test.ts",
  "test/records/replicas.test.ts",
  "test/server/bind-health.test.ts",
  "test/server/body-memory.test.ts",
  "test/server/dry-run.test.ts",
  "test/server/gates.test.ts",
  "test/server/language-model.test.ts",
  "test/server/postgres.test.ts",
  "test/server/schemathesis.test.ts",
  "test/server/single-sign-on.test.ts",
];

/** Seconds of the others that take longest, as `npm test` prints them at its end. */
const seconds: Readonly<Record<string, number>> = {
  "test/docs/language-models.test.ts": 94,
  "test/action/pull-request-life.test.ts": 93,
  "test/server/schemathesis.test.ts": 91,
  "test/action/check-runs.test.ts": 84,
  "test/action/e2e/pull-request.test.ts": 63,
  "test/github-app/webhook.test.ts": 60,
  "test/dashboard/compare.test.ts": 55,
  "test/action/step.test.ts": 50,
  "test/charts/monitoring.test.ts": 50,
  "test/executors/local/contained-sources.test.ts": 50,
  "test/dashboard/job.test.ts": 45,
  "test/controller-runtime/leader-election.test.ts": 44,
};

interface ArrangedFiles {
  readonly waiting: readonly string[];
  /** Files that share a process, by its name. */
  readonly shared: ReadonlyMap<string, readonly string[]>;
  readonly others: readonly string[];
}

/**
 * The files that mostly wait, those that share a process, and the others, the longest first, so that
 * the run does not end with one long file that has the machine to itself.
 * @throws Error where a file of the tables is not there
 */
export function arrangeTestFiles(files: readonly string[]): ArrangedFiles {
  const named = [...waitingFiles, ...ownProcess, ...Object.keys(seconds)];
  const missing = named.filter((file) => !files.includes(file));
  if (missing.length > 0) {
    throw new Error(`No test file, though ${import.meta.filename} names it: ${missing.join(", ")}`);
  }
  const shared = new Map<string, readonly string[]>();
  let others = files.filter((file) => !waitingFiles.includes(file));
  for (const [name, folders] of Object.entries(sharedFolders)) {
    const members = others.filter(
      (file) => folders.includes(dirname(file)) && !ownProcess.includes(file),
    );
    shared.set(name, members);
    others = others.filter((file) => !members.includes(file));
  }
  return {
    waiting: waitingFiles,
    shared,
    others: others.toSorted((one, other) => (seconds[other] ?? 0) - (seconds[one] ?? 0)),
  };
}
