import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { hasFailedGate } from "../../src/contract/jobs/gate.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import type { Report, ReportRow } from "../../src/report/report.ts";

const at = "2026-01-01T00:00:00.000Z";
const times = { p95Ms: 15.1, p99Ms: 15.8, runs: 20 };

/** A job that was compressed to a quarter. */
export function makeJob(overrides: Partial<Job> = {}): Job {
  return {
    id: "job-00000000000000000000000000",
    kind: "compress",
    name: "recognition",
    status: "Completed",
    statusReason: "completed",
    statusMessage: "",
    batchId: null,
    model: { source: "https://a", name: "recognition", bytes: 1, actualSha256: null },
    target: "cpu",
    recipe: defaultRecipe,
    gateLimits: {},
    dryRun: false,
    labels: {},
    createdAt: at,
    updatedAt: at,
    startedAt: at,
    finishedAt: at,
    transitions: [],
    telemetry: {
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
    },
    artifacts: [],
    baseline: null,
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
    error: null,
    ...overrides,
  };
}

export const gateMissed: Partial<Job> = {
  gates: [
    {
      gate: "maxSizeRatio",
      limit: 0.25,
      actual: 0.26759,
      baseline: null,
      level: "fail",
      passed: false,
    },
    {
      gate: "minCosine",
      limit: 0.95,
      actual: 0.99002,
      baseline: null,
      level: "fail",
      passed: true,
    },
  ],
};

export const jobFailed: Partial<Job> = {
  status: "Failed",
  telemetry: { progress: { fraction: 0.1 }, warnings: [] },
  gates: [],
  error: { code: "model_invalid", message: "The file is not an ONNX model" },
};

/** A report's row of a job; of one that has not ended, it shows the status alone. */
export function makeRow(overrides: Partial<Job> = {}): ReportRow {
  const job = makeJob(overrides);
  const { id, model, target, status } = job;
  const gatesFailed = hasFailedGate(job.gates);
  const row = {
    id,
    model: model.name,
    target,
    status,
    gatesFailed,
    logUrl: `https://mos.example.com/v1/jobs/${id}/logs`,
  };
  return isTerminal(status) ? { ...row, job } : row;
}

export function makeReport(rows: readonly ReportRow[], overrides: Partial<Report> = {}): Report {
  return {
    name: "Model compression",
    url: "https://mos.example.com/v1/batches/batch-0",
    rows,
    ...overrides,
  };
}
