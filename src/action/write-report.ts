import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as core from "@actions/core";
import type { Verdict } from "../report/conclude.ts";
import { renderJobSummary } from "../report/render-batch.ts";
import { reportDocument } from "../report/report-document.ts";
import type { Report } from "../report/report.ts";
import { setOutputs } from "./set-outputs.ts";

/**
 * Writes the report to files in a new folder, to the job's summary and to the step's outputs. Gives
 * the folder.
 */
export async function writeReport(
  report: Report,
  verdict: Verdict,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  const temporary = environment["RUNNER_TEMP"] ?? tmpdir();
  const folder = await mkdtemp(path.join(temporary, "model-optimization-"));
  const markdown = renderJobSummary(report, verdict);
  const files = {
    "report-json": path.join(folder, "report.json"),
    "report-markdown": path.join(folder, "report.md"),
  };
  await writeFile(files["report-json"], JSON.stringify(reportDocument(report, verdict)));
  await writeFile(files["report-markdown"], markdown);
  if (environment["GITHUB_STEP_SUMMARY"]) await core.summary.addRaw(markdown, true).write();
  setOutputs({ ...files, conclusion: verdict.conclusion ?? "pending", ...jobCountOutputs(report) });
  return folder;
}

function jobCountOutputs({ rows }: Report) {
  return {
    jobs: rows.length,
    completed: rows.filter(({ status }) => status === "Completed").length,
    failed: rows.filter(({ status }) => status === "Failed").length,
    "gates-failed": rows.filter(({ gatesFailed }) => gatesFailed).length,
  };
}
