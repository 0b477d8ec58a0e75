import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as core from "@actions/core";
import type { ActionOutputName } from "../contract/action.ts";
import type { Annotation } from "../report/build-annotations.ts";
import type { Verdict } from "../report/conclude.ts";
import { classifyOutcome, outcomes } from "../report/outcome.ts";
import { renderJobSummary } from "../report/render-batch.ts";
import { reportDocument } from "../report/report-document.ts";
import type { Report } from "../report/report.ts";
import { escapeLogLine } from "./escape-log-line.ts";
import { describeJobFailure } from "../report/figures.ts";
import { formatBytes } from "../contract/format-bytes.ts";

/** The runner takes no more annotations of one step. */
const maxCommandAnnotations = 10;

/** Sets outputs of the step. */
export function setOutputs(
  outputs: Readonly<Partial<Record<ActionOutputName, string | number>>>,
): void {
  for (const [name, value] of Object.entries(outputs)) core.setOutput(name, value);
}

/** Writes the report as files of the runner, and into the job's summary. */
export async function writeReport(
  report: Report,
  verdict: Verdict,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  const folder = await mkdtemp(
    path.join(environment["RUNNER_TEMP"] ?? tmpdir(), "model-optimization-"),
  );
  const markdown = renderJobSummary(report, verdict);
  const files = {
    "report-json": path.join(folder, "report.json"),
    "report-markdown": path.join(folder, "report.md"),
  };
  await writeFile(files["report-json"], JSON.stringify(reportDocument(report, verdict)));
  await writeFile(files["report-markdown"], markdown);
  if (environment["GITHUB_STEP_SUMMARY"]) await core.summary.addRaw(markdown, true).write();
  const { rows } = report;
  setOutputs({
    ...files,
    conclusion: verdict.conclusion ?? "pending",
    jobs: rows.length,
    completed: rows.filter(({ status }) => status === "Completed").length,
    failed: rows.filter(({ status }) => status === "Failed").length,
    "gates-failed": rows.filter(({ gatesFailed }) => gatesFailed).length,
  });
  return folder;
}

/** Tells in the step's log what came of each job. */
export function logResults({ rows }: Report): void {
  for (const row of rows) {
    const { size, accuracy } = row.job?.telemetry ?? {};
    const figures = [
      size &&
        `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)} (${size.ratio.toFixed(2)})`,
      accuracy && `${accuracy.sqnrDb.toFixed(1)} dB`,
      row.job && describeJobFailure(row.job),
    ];
    const words = [
      `${row.model} for ${row.target} ${outcomes[classifyOutcome(row)].words}`,
      ...figures,
    ].filter(Boolean);
    core.info(escapeLogLine(words.join(", ")));
  }
}

/** Annotations by commands of the runner, for workflows that may write no check runs. */
export function writeAnnotations(annotations: readonly Annotation[]): void {
  for (const { place, level, title, message } of annotations.slice(0, maxCommandAnnotations)) {
    const issueCommand = level === "failure" ? core.error : core.warning;
    issueCommand(message, { title, file: place.file, startLine: place.line });
  }
}
