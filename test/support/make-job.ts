import type { Job } from "../../src/contract/jobs/job.ts";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { Telemetry } from "../../src/contract/jobs/telemetry.ts";

const at = "2026-01-01T00:00:00.000Z";
const times = { p95Ms: 15.1, p99Ms: 15.8, runs: 20 };

/** A job's record, by default one that waits. */
export function makeJob(fields: Partial<Job> = {}): Job {
  return {
    id: "job-01kdvfmb000123456789abcdef",
    kind: "compress",
    name: "recognition",
    status: "Pending",
    statusReason: "queued",
    statusMessage: "Waiting for a worker",
    batchId: null,
    model: {
      source: "https://models.test/recognition.onnx",
      name: "recognition",
      bytes: null,
      actualSha256: null,
    },
    target: "cpu",
    recipe: defaultRecipe,
    gateLimits: {},
    dryRun: false,
    labels: {},
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    finishedAt: null,
    transitions: [{ status: "Pending", at, reason: "queued", message: "Waiting for a worker" }],
    telemetry: { progress: { fraction: 0 }, warnings: [] },
    artifacts: [],
    baseline: null,
    gates: [],
    error: null,
    ...fields,
  };
}

/** A job that was compressed to a quarter. */
export function makeCompletedJob(fields: Partial<Job> = {}): Job {
  return makeJob({
    status: "Completed",
    statusReason: "completed",
    statusMessage: "",
    model: { source: "https://a", name: "recognition", bytes: 1, actualSha256: null },
    startedAt: at,
    finishedAt: at,
    transitions: [],
    telemetry: compressedTelemetry,
    gates: [
      {
        gate: "minCosine",
        limit: 0.95,
        actual: 0.99002,
        baseline: null,
        level: "fail",
        passed: true,
      },
    ],
    ...fields,
  });
}

const compressedTelemetry: Telemetry = {
  progress: { fraction: 1 },
  size: { originalBytes: 10_800_000, resultBytes: 2_890_000, ratio: 0.2676, predicted: false },
  weights: { total: 42, quantized: 40, quantizedBytes: 10_000_000 },
  accuracy: {
    level: "outputs",
    data: "generated",
    samples: 8,
    sqnrDb: 15.7,
    cosine: 0.99002,
    outputs: [
      {
        name: "logits",
        sqnrDb: 15.7,
        cosine: 0.99002,
        maxAbsoluteError: 0.1,
        top1Agreement: 0.875,
      },
    ],
  },
  latency: {
    original: { p50Ms: 10.234, ...times },
    result: { p50Ms: 12.9, ...times },
    ratio: 1.26,
  },
  memory: { originalPeakBytes: 80_000_000, resultPeakBytes: 70_000_000 },
  device: {
    executionProvider: "cpu",
    name: "A processor",
    threads: 2,
    runtime: "onnxruntime-node 1.30.0",
  },
  stageSeconds: { fetch: 0.1, optimize: 2.5 },
  warnings: [],
};
