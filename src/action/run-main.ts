import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { conclude, type Verdict } from "../report/conclude.ts";
import { renderComment } from "../report/render-batch.ts";
import type { Report } from "../report/report.ts";
import { createCheckRunWriter } from "./check-run-writer.ts";
import { compress, type CompressionResult } from "./compress.ts";
import { connectGitHub, type GitHub } from "./connect-github.ts";
import { resolveCredentials } from "./open-service-session.ts";
import { downloadArtifacts } from "./download-artifacts.ts";
import { readInputs } from "./read-inputs.ts";
import { CheckRunReporter } from "./check-run-reporter.ts";
import type { Step, RunnerContext } from "./step.ts";
import { digest, stepIdentity } from "./step-identity.ts";
import { writeStickyComment } from "./sticky-comment.ts";
import { readWorkflowRun } from "./workflow-run.ts";
import { writeAnnotations, logResults, setOutputs, writeReport } from "./write-results.ts";

/** The runner waits 10 s for a step that it cancels. */
const cancelGraceMs = 5_000;

/** The step itself: submits a batch, follows it and tells what came of it. */
export async function runMain(context: RunnerContext): Promise<void> {
  const { environment, dispatcher, signal } = context;
  const inputs = readInputs(environment);
  const run = await readWorkflowRun(environment);
  const credentials = resolveCredentials(inputs, run, environment);
  const identity = stepIdentity(run, inputs);
  const token = inputs["github-token"];
  const github =
    token === undefined ? undefined : connectGitHub({ token, apiUrl: run.apiUrl, dispatcher });
  const reporter = github && createCheckRunReporter(github, { inputs, run, identity });
  const step = { ...context, inputs, run, identity, github, reporter };
  if (credentials === undefined) {
    await reportUntrusted(step);
    return;
  }
  const started =
    inputs.wait && reporter?.begin({ name: identity.checkName, url: run.url, rows: [] });
  const compressed = await compress(step, credentials);
  await started;
  const published = publishResults(step, compressed);
  await (signal.aborted ? Promise.race([published, delay(cancelGraceMs)]) : published);
}

function createCheckRunReporter(
  github: GitHub,
  { inputs, run, identity }: Pick<Step, "inputs" | "run" | "identity">,
): CheckRunReporter {
  return new CheckRunReporter({
    checks: createCheckRunWriter(github, { ...run, detailsUrl: run.url }),
    checkName: identity.checkName,
    externalId: digest(identity.labels),
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
  });
}

async function publishResults(
  step: Step,
  { report, client, annotations }: CompressionResult,
): Promise<void> {
  const { inputs, environment, github, reporter, signal } = step;
  const verdict = conclude(report, inputs["fail-on"]);
  logResults(report);
  const folder = await writeReport(report, verdict, environment);
  const isLeftToService = !inputs.wait && report.abortReason === undefined;
  const isPublished = isLeftToService || (await reporter?.complete(report, verdict, annotations));
  if (!isPublished) writeAnnotations(annotations);
  if (inputs.comment && inputs.wait && github)
    await writeComment(github, step, { report, verdict });
  if (inputs.download && client) {
    const artifacts = path.join(folder, "artifacts");
    await downloadArtifacts(client, report.rows, { folder: artifacts, signal });
    setOutputs({ artifacts });
  }
  const isGood = [null, "success", "neutral"].includes(verdict.conclusion);
  if (!isGood)
    core.setFailed(
      [verdict.title, ...(report.failureMessage === undefined ? [] : [report.failureMessage])].join(
        "\n",
      ),
    );
}

/** A comment is worth no failure. */
async function writeComment(
  github: GitHub,
  { run, identity }: Step,
  { report, verdict }: { report: Report; verdict: Verdict },
) {
  if (run.pullRequest === undefined) return;
  const marker = `<!-- model-optimization ${digest(identity.checkName)} -->`;
  const place = { repository: run.repository, pullRequest: run.pullRequest, marker };
  try {
    await writeStickyComment(github, place, renderComment(report, verdict, marker));
  } catch (error) {
    core.warning(`No comment: ${String(error)}. It needs \`permissions: pull-requests: write\`.`);
  }
}

/** Nothing can be done for changes of somebody else, and that is nobody's fault. */
async function reportUntrusted({ run, identity, reporter, environment }: Step): Promise<void> {
  const whose = run.untrusted === "dependabot" ? "of Dependabot" : "from forks";
  const explanation = `GitHub gives workflows of pull requests ${whose} neither secrets nor OIDC tokens, so that the service cannot know this one. A maintainer can run the workflow on a branch of the repository.`;
  const verdict = { conclusion: "neutral" as const, title: "Nothing was compressed" };
  const report = { name: identity.checkName, url: run.url, rows: [], explanation };
  core.notice(`${verdict.title}: ${explanation}`);
  await writeReport(report, verdict, environment);
  // The token of a fork's workflow may write nothing.
  if (run.untrusted !== "fork") await reporter?.complete(report, verdict, []);
}
