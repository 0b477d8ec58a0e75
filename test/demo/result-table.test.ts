import assert from "node:assert/strict";
import { test } from "node:test";
import { resultTable } from "../../src/demo/result-table.ts";
import { makeCompletedJob } from "../support/make-job.ts";

const jobs = [
  makeCompletedJob(),
  makeCompletedJob({
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
  makeCompletedJob({
    status: "Failed",
    telemetry: { progress: { fraction: 0.1 }, warnings: [] },
    error: { code: "model_invalid", message: "The file is not an ONNX model" },
  }),
];

test("resultTable() shows the figures of every job side by side", () => {
  assert.equal(
    resultTable(jobs, 170),
    [
      "model        target    size               ratio  SQNR     cosine  latency p50       gates",
      "-----------  --------  -----------------  -----  -------  ------  ----------------  -----------------------------------------------------------",
      "recognition  cpu       10.8 MB → 2.89 MB  0.27   15.7 dB  0.9900  10.23 → 12.90 ms  1 passed",
      "recognition  cpu-int8  10.8 MB → 2.89 MB  0.27   15.7 dB  0.9900  10.23 → 12.90 ms  failed: has 26.8 % of the original's size; 25 % are allowed",
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
