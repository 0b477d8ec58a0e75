import { randomUUID } from "node:crypto";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { batchCheckName } from "../github/check-run-requests.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import type { Report } from "../report/report.ts";
import { CheckRunReporter, createCheckRunWriter } from "./check-run-reporter.ts";
import { compress, type CompressionResult, setOutputs } from "./compress.ts";
import { connectGitHub, type GitHub } from "./connect-github.ts";
import { downloadArtifacts } from "./download-artifacts.ts";
import { logResults } from "./follow-jobs.ts";
import type { ReportingInputs } from "./inputs.ts";
import { type BatchFile, isDryRun, readBatchFile } from "./plan-batch.ts";
import { readInputs, readReportingInputs } from "./read-inputs.ts";
import { reportUntrusted, writeAnnotations, writeComment, writeReport } from "./write-report.ts";
import { lacksCredentials, resolveCredentials } from "./service-client.ts";
import type { ReportingStep, Step, StepProcess } from "./step.ts";
import { digest, readWorkflowRun, stepIdentity, type WorkflowRun } from "./workflow-run.ts";

/** The runner kills a step 10 s after it cancels it. */
const cancelGraceMs = 5_000;

/** The step itself: compresses the models and publishes the results. */
export async function runMain(stepProcess: StepProcess): Promise<void> {
  const { environment, context, signal } = stepProcess;
  const run = readWorkflowRun(context, environment);
  if (lacksCredentials(run, environment)) {
    const { reporting } = await prepareReporting(
      stepProcess,
      run,
      readReportingInputs(environment),
    );
    await reportUntrusted(reporting);
    return;
  }
  const inputs = readInputs(environment);
  const credentials = resolveCredentials(inputs, environment);
  const { reporting, batchFile } = await prepareReporting(stepProcess, run, inputs);
  const step = { ...reporting, inputs };
  const preparing = { name: step.identity.checkName, url: run.url, rows: [] };
  if (inputs.wait) step.reporter?.begin(preparing);
  const result = await compress(step, credentials, batchFile);
  const published = publishResults(step, result);
  await (signal.aborted ? Promise.race([published, delay(cancelGraceMs)]) : published);
}

/** What the step reports with, and the batch file, which says whether its check is a dry run's. */
async function prepareReporting(
  stepProcess: StepProcess,
  run: WorkflowRun,
  inputs: ReportingInputs,
): Promise<{ reporting: ReportingStep; batchFile: Promise<BatchFile> }> {
  const submission = randomUUID();
  core.saveState("submission", submission);
  const identity = stepIdentity(run, inputs, submission);
  const token = inputs["github-token"];
  const github =
    token === undefined ? undefined : connectGitHub(token, run, stepProcess.dispatcher);
  const batchFile = readBatchFile(inputs, run.workspace);
  const name = batchCheckName(identity.checkName, await isDryRun(inputs, batchFile));
  const reporter = github && createCheckRunReporter(github, { inputs, run, identity, name });
  return { reporting: { ...stepProcess, run, identity, github, reporter }, batchFile };
}

interface CheckRunNames extends Pick<ReportingStep, "run" | "identity"> {
  readonly inputs: ReportingInputs;
  readonly name: string;
}

function createCheckRunReporter(
  github: GitHub,
  { inputs, run, identity, name }: CheckRunNames,
): CheckRunReporter {
  return new CheckRunReporter({
    checks: createCheckRunWriter(github, run),
    check: {
      name,
      externalId: digest(identity.labels),
      detailsUrl: run.url,
    },
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
  });
}

async function publishResults(step: Step, result: CompressionResult): Promise<void> {
  const { inputs, environment } = step;
  const { report } = result;
  const verdict = conclude(report, inputs["fail-on"]);
  logResults(report);
  core.saveState("verdict", JSON.stringify(verdict));
  const folder = await writeReport(report, verdict, environment);
  await completeCheckRun(step, result, verdict);
  if (inputs.wait) await writeComment(step, report, verdict);
  if (inputs.download) await writeArtifacts(step, result, path.join(folder, "artifacts"));
  setFailure(report, verdict);
}

/** Completes the check run, which the service does where the step does not wait. */
async function completeCheckRun(
  { inputs, reporter }: Step,
  { report, annotations }: CompressionResult,
  verdict: Verdict,
): Promise<void> {
  const isLeftToService = !inputs.wait && report.abortReason === undefined;
  const isPublished = isLeftToService || (await reporter?.complete(report, verdict, annotations));
  if (isPublished) core.saveState("reported", "true");
  else writeAnnotations(annotations);
}

async function writeArtifacts(
  { signal }: Step,
  { client, report }: CompressionResult,
  folder: string,
): Promise<void> {
  if (!client) return;
  await downloadArtifacts(client, report.rows, { folder, signal });
  setOutputs({ artifacts: folder });
}

function setFailure({ failureMessage }: Report, { conclusion, title }: Verdict): void {
  if ([null, "success", "neutral"].includes(conclusion)) return;
  core.setFailed(failureMessage === undefined ? title : `${title}\n${failureMessage}`);
}
