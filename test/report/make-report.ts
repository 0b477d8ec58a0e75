import { hasFailedGate } from "../../src/contract/jobs/gate.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import { jobLinks, type Report, type ReportRow } from "../../src/report/report.ts";
import { makeCompletedJob } from "../support/make-job.ts";

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

/** A report's row of a job; of one that has not ended, it shows only the status. */
export function makeRow(overrides: Partial<Job> = {}): ReportRow {
  const job = makeCompletedJob(overrides);
  const { id, model, target, status } = job;
  const gatesFailed = hasFailedGate(job.gates);
  const row = {
    id,
    model: model.name,
    target,
    status,
    gatesFailed,
    ...jobLinks("https://mos.example.com", id),
  };
  return isTerminal(status) ? { ...row, job } : row;
}

export function makeReport(rows: readonly ReportRow[], overrides: Partial<Report> = {}): Report {
  return {
    name: "Model compression",
    url: "https://mos.example.com/batches/batch-0",
    rows,
    ...overrides,
  };
}
