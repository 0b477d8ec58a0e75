import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { resultTable } from "../../src/demo/result-table.ts";

const at = "2026-01-01T00:00:00.000Z";
const times = { p95Ms: 1, p99Ms: 1, runs: 20 };

function makeJob(overrides: Partial<Job>): Job {
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
      accuracy: {
        level: "outputs",
        data: "generated",
        samples: 8,
        sqnrDb: 15.7,
        cosine: 0.99002,
        outputs: [],
      },
      latency: {
        original: { p50Ms: 10.234, ...times },
        result: { p50Ms: 12.9, ...times },
        ratio: 1.26,
      },
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

const jobs = [
  makeJob({}),
  makeJob({
    target: "cpu-int8",
    gates: [
      {
        gate: "maxSizeRatio",
        limit: 0.25,
        actual: 0.26759,
        baseline: null,
        level: "fail",
        passed: false,
      },
    ],
  }),
  makeJob({
    status: "Failed",
    telemetry: { progress: { fraction: 0.1 }, warnings: [] },
    error: { code: "model_invalid", message: "The file is not an ONNX model" },
  }),
];

test("resultTable() shows the figures of every job side by side", () => {
  assert.equal(
    resultTable(jobs, 140),
    [
      "model        target    size               ratio  SQNR     cosine  latency p50       gates",
      "-----------  --------  -----------------  -----  -------  ------  ----------------  ---------------------------------",
      "recognition  cpu       10.8 MB → 2.89 MB  0.27   15.7 dB  0.9900  10.23 → 12.90 ms  1 passed",
      "recognition  cpu-int8  10.8 MB → 2.89 MB  0.27   15.7 dB  0.9900  10.23 → 12.90 ms  failed: maxSizeRatio 0.268 > 0.25",
      "recognition  cpu       -                  -      -        -       -                 Failed: model_invalid",
    ].join("\n"),
  );
});

test("resultTable() gives each job a paragraph on a narrow terminal", () => {
  const text = resultTable(jobs.slice(0, 1), 60);
  assert.equal(
    text,
    [
      "recognition for cpu",
      "  size         10.8 MB → 2.89 MB",
      "  ratio        0.27",
      "  SQNR         15.7 dB",
      "  cosine       0.9900",
      "  latency p50  10.23 → 12.90 ms",
      "  gates        1 passed",
    ].join("\n"),
  );
});
