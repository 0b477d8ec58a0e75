import assert from "node:assert/strict";
import test from "node:test";
import type { FailOn } from "../../src/contract/batches/action.ts";
import { conclude } from "../../src/report/conclude.ts";
import { reportDocument } from "../../src/report/report-document.ts";
import type { Report, ReportRow } from "../../src/report/report.ts";
import { gateMissed, jobFailed, makeReport, makeRow } from "./make-report.ts";

const passed = makeRow();
const planned = makeRow({ dryRun: true, gates: [] });
const missed = makeRow(gateMissed);
const warned = makeRow({
  gates: [
    {
      gate: "maxSizeRegression",
      limit: 0,
      actual: null,
      baseline: null,
      level: "warn",
      passed: false,
    },
  ],
});
const failed = makeRow(jobFailed);
const cancelled = makeRow({ status: "Cancelled" });
const cancelledBy = { tokenId: null, name: "Ada" };
const without = makeRow({
  gates: (["maxSizeRegression", "maxSqnrDropDb"] as const).map((gate) => ({
    gate,
    limit: 0,
    actual: null,
    baseline: null,
    level: "warn",
    passed: false,
    note: "There is no baseline",
  })),
});
const running = makeRow({ status: "Optimizing" });

const cases: readonly (readonly [
  string,
  readonly ReportRow[],
  FailOn,
  Report["abortReason"],
  string | null,
  string,
])[] = [
  ["all jobs passed", [passed, passed], "gates", undefined, "success", "2 jobs passed"],
  ["one job passed", [passed], "gates", undefined, "success", "1 job passed"],
  ["a job was planned", [planned], "gates", undefined, "success", "1 job planned"],
  [
    "a plan failed",
    [planned, failed],
    "gates",
    undefined,
    "failure",
    "recognition for cpu failed: The file is not an ONNX model",
  ],
  [
    "a gate failed",
    [passed, missed],
    "gates",
    undefined,
    "failure",
    "recognition for cpu has 26.8 % of the original's size; 25 % are allowed",
  ],
  [
    "a gate warns",
    [passed, warned],
    "gates",
    undefined,
    "neutral",
    'recognition for cpu has no measured figure for "Growth of the size"; 0 % are allowed',
  ],
  [
    "a gate warns",
    [passed, warned],
    "warnings",
    undefined,
    "failure",
    'recognition for cpu has no measured figure for "Growth of the size"; 0 % are allowed',
  ],
  [
    "a gate failed that only warns",
    [passed, missed],
    "jobs",
    undefined,
    "neutral",
    "recognition for cpu has 26.8 % of the original's size; 25 % are allowed",
  ],
  [
    "a job failed",
    [failed, missed],
    "jobs",
    undefined,
    "failure",
    "1 of 2 jobs failed, 1 failed a gate",
  ],
  [
    "a job failed and nothing shall fail",
    [failed],
    "nothing",
    undefined,
    "neutral",
    "recognition for cpu failed: The file is not an ONNX model",
  ],
  [
    "a job was cancelled at the service",
    [passed, cancelled],
    "gates",
    undefined,
    "cancelled",
    "recognition for cpu was cancelled",
  ],
  [
    "a job was cancelled and nothing shall fail",
    [passed, cancelled],
    "nothing",
    undefined,
    "neutral",
    "recognition for cpu was cancelled",
  ],
  [
    "somebody cancelled jobs",
    [cancelled, makeRow({ status: "Cancelled", cancelledBy })],
    "gates",
    undefined,
    "cancelled",
    "2 of 2 jobs cancelled",
  ],
  [
    "somebody cancelled a job",
    [makeRow({ status: "Cancelled", cancelledBy })],
    "gates",
    undefined,
    "cancelled",
    "recognition for cpu was cancelled by Ada",
  ],
  [
    "nothing can be compared yet",
    [without],
    "gates",
    undefined,
    "neutral",
    'recognition for cpu has no verdict on "Growth of the size" and "Loss of accuracy" (There is no baseline)',
  ],
  [
    "jobs warn for one reason",
    [without, without, passed],
    "gates",
    undefined,
    "neutral",
    "2 of 3 jobs passed with a warning: There is no baseline",
  ],
  [
    "jobs fail a gate",
    [missed, missed],
    "gates",
    undefined,
    "failure",
    "2 of 2 jobs failed a gate: Size against the original",
  ],
  ["jobs are at work", [failed, running], "gates", undefined, null, "1 of 2 jobs ended"],
  [
    "the workflow was cancelled",
    [passed, running],
    "gates",
    "cancelled",
    "cancelled",
    "Cancelled with its workflow run, 1 of 2 jobs ended",
  ],
  [
    "the time was up",
    [running],
    "nothing",
    "timed_out",
    "timed_out",
    "Out of time, 0 of 1 job ended",
  ],
  [
    "the service is gone",
    [passed, running],
    "nothing",
    "unreachable",
    "failure",
    "Infrastructure: the service cannot be reached, 1 of 2 jobs ended",
  ],
];

for (const [name, rows, failOn, abortReason, conclusion, title] of cases) {
  test(`conclude() where ${name} gives ${conclusion}, failing on ${failOn}`, () => {
    assert.deepEqual(conclude(makeReport(rows, abortReason && { abortReason }), failOn), {
      conclusion,
      title,
    });
  });
}

test("conclude() says in the title what kept a batch from being run", () => {
  const failureMessage = "The service has no target arm; it has cpu\nCorrect the input";
  assert.deepEqual(conclude(makeReport([], { abortReason: "error", failureMessage }), "gates"), {
    conclusion: "failure",
    title: "The batch could not be run: The service has no target arm; it has cpu",
  });
});

test("the report for programs names the model of every job alike, also of one that has not ended", () => {
  const report = makeReport([passed, running], { abortReason: "cancelled" });
  const { jobs } = reportDocument(report, conclude(report, "gates"));
  assert.deepEqual(
    jobs.map(({ model }) => model.name),
    ["recognition", "recognition"],
  );
});
