import assert from "node:assert/strict";
import { test } from "node:test";
import { nextStep } from "../../src/contract/jobs/next-steps.ts";
import { conclude } from "../../src/report/conclude.ts";
import { measurementNotes, measurementTable } from "../../src/report/measurements.ts";
import { renderBatchCheck } from "../../src/report/render-batch.ts";
import { renderJobCheck } from "../../src/report/render-job.ts";
import type { EndedRow } from "../../src/report/report.ts";
import { detailSections, jobSections } from "../../src/report/sections.ts";
import { makeCompletedJob } from "../support/make-job.ts";
import { makeReport, makeRow } from "./make-report.ts";

test("a baseline's latency is that of the same run, or said not to be timed", () => {
  const { telemetry, ...job } = makeCompletedJob();
  const timed = { p50Ms: 10, runs: 100 };
  const latency = { original: timed, result: timed, ratio: 1 };
  const baseline = {
    jobId: job.id,
    sha: "5".repeat(40),
    branch: "main",
    by: "branch" as const,
  };
  const write = (measured: typeof latency & { baseline?: { ratio: number } }) => {
    const compared = { ...job, baseline, telemetry: { ...telemetry, latency: measured } };
    return measurementTable(compared).rows.join("\n");
  };
  assert.match(write(latency), /^\| latency p50, ms .* ×1\.00 \| not timed in this run \|/m);
  assert.match(write({ ...latency, baseline: { ratio: 1.25 } }), / \| 8\.00 \| ▲ 25\.0 %/);
});

test("a latency whose interval says nothing is in no title and in no chart", () => {
  const { telemetry } = makeCompletedJob();
  const timed = { p50Ms: 10, runs: 100 };
  const write = (ratioHigh: number) => {
    const interval = { ratio: 0.7, ratioLow: 0.5, ratioHigh, sessions: 2 };
    const latency = { original: timed, result: timed, ...interval };
    const row = makeRow({ telemetry: { ...telemetry, latency } }) as EndedRow;
    const report = makeReport([row, row]);
    const { title } = renderJobCheck(row, "success", []);
    return `${title}\n${renderBatchCheck(report, conclude(report, "gates")).text}`;
  };
  assert.match(write(0.9), /, 70 % of the latency\n.*Median latency of the result/s);
  assert.doesNotMatch(write(1e10), /of the latency\n|Median latency of the result/);
});

test("weights are counted as the report lists them, which is not the original's count", () => {
  const { telemetry, ...job } = makeCompletedJob();
  const weights = { total: 34, quantized: 14, quantizedBytes: 1000 };
  const { rows } = measurementTable({ ...job, telemetry: { ...telemetry, weights } });
  assert.match(rows.join("\n"), /^\| weights \|  \| 14 of 34 changed \|/m);
});

test("a GPU's memory stands beside the machine's", () => {
  const { telemetry, ...job } = makeCompletedJob();
  const memory = { ...telemetry.memory, originalGpuBytes: 2_100_000_000, resultGpuBytes: 7e8 };
  const { rows } = measurementTable({ ...job, telemetry: { ...telemetry, memory } });
  assert.match(rows.join("\n"), /^\| GPU memory \| 2\.10 GB \| 700 MB \|/m);
});

test("a language model's check run has its perplexity, divergence and next tokens", () => {
  const logits = { name: "logits", sqnrDb: 9.5, cosine: 0.95, maxAbsoluteError: 17 };
  const job = makeCompletedJob({
    telemetry: {
      progress: { fraction: 1 },
      accuracy: {
        level: "outputs",
        data: "builtin",
        samples: 5,
        sqnrDb: 9.5,
        cosine: 0.95,
        outputs: [{ ...logits, top1Agreement: 0.74 }],
        language: {
          tokens: 1700,
          windowTokens: 341,
          originalPerplexity: 21.66,
          resultPerplexity: 23.4,
          perplexityRatio: 1.0803,
          klDivergence: 0.1234,
        },
      },
      warnings: [],
    },
  });
  const { rows } = measurementTable(job);
  const text = rows.join("\n");
  assert.match(text, /perplexity \| 21\.66 \| 23\.40 \| 1\.080/);
  assert.match(text, /KL divergence, nats \|\s+\| 0\.1234/);
  assert.match(text, /same next token of `logits` \|\s+\| 74\.0 %/);
  const [note] = measurementNotes(job);
  assert.match(note?.head ?? "", /Accuracy on 5 windows of the built-in text\./);
});

test("the accuracy of weights is of no samples, and none are asked for", () => {
  const figures = { sqnrDb: 20, cosine: 0.99 };
  const accuracy = {
    ...figures,
    level: "weights" as const,
    data: "generated" as const,
    samples: 0,
    outputs: [],
  };
  const missed = { level: "fail", actual: 20, baseline: null, passed: false } as const;
  const { telemetry, ...job } = makeCompletedJob({
    gates: [{ gate: "minSqnrDb", limit: 30, ...missed }],
  });
  const measured = { ...job, telemetry: { ...telemetry, accuracy } };
  const [note] = measurementNotes(measured);
  assert.match(note?.head ?? "", /Accuracy of the worst weight\./);
  assert.doesNotMatch(note?.head ?? "", /samples/);
  assert.doesNotMatch(nextStep(measured) ?? "", /samples/);
  const details = detailSections([makeRow(measured)]);
  assert.doesNotMatch(JSON.stringify(details), /generated samples/);
});

test("gates that warn are not counted among those that fail", () => {
  const missed = { limit: 0.5, actual: 0.75, baseline: null, passed: false };
  const write = (...levels: ("fail" | "warn")[]) => {
    const names = ["maxSizeRatio", "minCosine", "minTop1"] as const;
    const gates = levels.map((level, index) => {
      return { gate: names[index] ?? "maxSizeRatio", level, ...missed };
    });
    const [table] = jobSections({ rows: [makeRow({ gates })] });
    return table?.rows[0]?.split(" | ").at(-1);
  };
  assert.equal(write("fail", "warn", "warn"), "1 of 3 failed, 2 warned |");
  assert.equal(write("fail", "fail"), "2 of 2 failed |");
  assert.equal(write("warn"), "1 of 1 warned |");
});
